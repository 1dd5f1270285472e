package http

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// What n8n made of these answers.
func TestResponses(t *testing.T) {
	const asked = `"options":{"response":{"response":`
	tests := []struct{ name, parameters, want string }{
		{"object", `{"url":"BASE/json"}`, `[{"ok":true,"list":[1,2,3],"nested":{"a":null}}]`},
		{"list", `{"url":"BASE/array"}`, `[{"id":1},{"id":2}]`},
		{"scalar", `{"url":"BASE/scalar"}`, `[42]`},
		{"text", `{"url":"BASE/text"}`, `[{"data":"plain text\nsecond line"}]`},
		{"text in Latin-1", `{"url":"BASE/latin1"}`, `[{"data":"café"}]`},
		{"csv", `{"url":"BASE/file.csv"}`, `[{"data":"id\n1\n"}]`},
		{"no content", `{"url":"BASE/status/204"}`, `[{}]`},
		{"empty JSON", `{"url":"BASE/empty"}`, `[{}]`},
		{"JSON by suffix, with a byte order mark", `{"url":"BASE/problem"}`, `[{"title":"x"}]`},
		{"head", `{"url":"BASE/json","method":"HEAD"}`, `[{}]`},
		{"redirect", `{"url":"BASE/redirect"}`, `[{"ok":true,"list":[1,2,3],"nested":{"a":null}}]`},
		{"asked as text", `{"url":"BASE/scalar",` + asked + `{"responseFormat":"text","outputPropertyName":"body"}}}}`, `[{"body":"42"}]`},
		{"never an error", `{"url":"BASE/status/404",` + asked + `{"neverError":true}}}}`, `[{"error":{"code":"E404","message":"scripted 404"}}]`},
	}
	base := service(t).URL
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			items, err := execute(t, newCall(t, base, tt.parameters))
			require.NoError(t, err)
			require.Equal(t, tt.want, jsons(t, items))
			for _, item := range items {
				require.Equal(t, workflow.Paired(0), item.PairedItem)
			}
		})
	}
}

func TestFullResponse(t *testing.T) {
	base := service(t).URL
	items, err := execute(t, newCall(t, base, `{"url":"BASE/status/404","options":{"response":{"response":{"fullResponse":true,"neverError":true}}}}`))
	require.NoError(t, err)
	full := gjson.ParseBytes(items[0].JSON)
	require.Equal(t, "scripted 404", full.Get("body.error.message").String())
	require.Equal(t, "application/json", full.Get("headers.content-type").String())
	require.EqualValues(t, 404, full.Get("statusCode").Int())
	require.Equal(t, "Not Found", full.Get("statusMessage").String())

	items, err = execute(t, newCall(t, base, `{"url":"BASE/array","options":{"response":{"response":{"fullResponse":true}}}}`))
	require.NoError(t, err)
	require.Len(t, items, 1, "a full response keeps a list whole")
	require.Equal(t, `[{"id":1},{"id":2}]`, gjson.GetBytes(items[0].JSON, "body").Raw)
}

func TestFiles(t *testing.T) {
	base := service(t).URL
	tests := []struct {
		name, parameters, property string
		want                       workflow.Binary
	}{
		{
			name: "by media type", parameters: `{"url":"BASE/bin"}`, property: "data",
			want: workflow.Binary{MimeType: "application/octet-stream", FileExtension: "bin", FileName: "data.bin", FileSize: "4 B", Data: base64.StdEncoding.EncodeToString([]byte{0, 1, 2, 250})},
		},
		{
			name: "asked for", parameters: `{"url":"BASE/scalar","options":{"response":{"response":{"responseFormat":"file","outputPropertyName":"f"}}}}`, property: "f",
			want: workflow.Binary{MimeType: "application/json", FileType: "json", FileExtension: "json", FileName: "scalar", FileSize: "2 B", Data: "NDI="},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			items, err := execute(t, newCall(t, base, tt.parameters, `{"q":1}`))
			require.NoError(t, err)
			require.Equal(t, `[{"q":1}]`, jsons(t, items), "the input's json stays")
			require.Equal(t, map[string]workflow.Binary{tt.property: tt.want}, items[0].Binary)
		})
	}
}

func TestFileSize(t *testing.T) {
	tests := map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 1234: "1.23 kB", 12345: "12.3 kB", 999_999: "1 MB", 64 << 20: "67.1 MB", 5_000_000_000: "5 GB"}
	for n, want := range tests {
		require.Equal(t, want, node.FileSize(n))
	}
}

func TestResponseLimit(t *testing.T) {
	call := newCall(t, service(t).URL, `{"url":"BASE/text"}`)
	types := Config{MaxResponseBytes: 10}.Types()
	_, err := types[0].Execute(t.Context(), call)
	require.Equal(t, "too_large", string(nodeError(t, err).Reason))
	require.Contains(t, err.Error(), "larger than 10 B")
	types = Config{MaxResponseBytes: 22}.Types()
	_, err = types[0].Execute(t.Context(), call)
	require.NoError(t, err, "as large as the limit")
}
