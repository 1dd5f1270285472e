package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const secret = `p<"ü/& w0rd\>`

func set(secrets ...string) *Set {
	s := &Set{}
	s.Add(secrets...)
	return s
}

func TestForms(t *testing.T) {
	s := set(secret)
	inJSON, err := json.Marshal(secret)
	require.NoError(t, err)
	twice, err := json.Marshal(string(inJSON))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"plain": secret, "JSON": string(inJSON), "JSON in JSON": string(twice), "JSON as others write it": `"p<\"ü\/& w0rd\\>"`,
		"JSON of Python": `"p<\"\u00fc/& w0rd\\>"`,
		"HTML":           html.EscapeString(secret), "a query": "key=" + url.QueryEscape(secret) + "&", "a path": url.PathEscape(secret),
		"lower case": strings.ToLower(url.QueryEscape(secret)), "hexadecimal": hex.EncodeToString([]byte(secret)),
	} {
		clean := s.String("before " + text + " after")
		require.Contains(t, clean, Blank, name)
		require.Contains(t, clean, "before ", name)
		require.Contains(t, clean, " after", name)
		for _, part := range []string{"w0rd", hex.EncodeToString([]byte("w0rd"))} {
			require.NotContains(t, clean, part, name)
		}
	}
	require.Equal(t, "nothing here", s.String("nothing here"))
}

// Whatever is around a secret in something that is base64, no more than the bits it shares with its
// neighbours are left, and it can still be decoded.
func TestBase64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[!-~]{10,40}`).Draw(t, "secret")
		before, after := rapid.SliceOf(rapid.Byte()).Draw(t, "before"), rapid.SliceOf(rapid.Byte()).Draw(t, "after")
		whole := append(append(append([]byte{}, before...), secret...), after...)
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
			text := encoding.EncodeToString(whole)
			clean := set(secret).String(text)
			require.Len(t, clean, len(text))
			decoded, err := encoding.DecodeString(clean)
			require.NoError(t, err)
			require.NotContains(t, string(decoded), secret)
			if i := len(before); !strings.Contains(string(before)+string(after), secret[1:len(secret)-1]) {
				require.NotContains(t, string(decoded[i:i+len(secret)]), secret[2:len(secret)-2])
			}
		}
	})
}

func TestShortAndOverlappingSecrets(t *testing.T) {
	s := set("12345", "", "longer-secret", "longer-secret-with-more")
	require.Equal(t, "12345 "+Blank+" "+Blank, s.String("12345 longer-secret-with-more longer-secret"))
	require.True(t, set("12345").Empty())
	require.True(t, (*Set)(nil).Empty())
	require.Equal(t, "x", (*Set)(nil).String("x"))
}

func TestResult(t *testing.T) {
	echo := func(text string) json.RawMessage {
		raw, err := json.Marshal(map[string]any{"said": text, text: 1, "deep": []any{map[string]any{"x": "a " + text + " b"}}})
		require.NoError(t, err)
		return raw
	}
	failed := &engine.NodeError{Message: "sent " + secret, Description: url.QueryEscape(secret), Context: echo(secret)}
	result := node.Result{Result: engine.Result{
		Outputs: []workflow.Items{{{
			JSON:   echo(secret),
			Binary: map[string]workflow.Binary{"data": {Data: base64.StdEncoding.EncodeToString([]byte("you sent " + secret + "!")), FileName: secret}},
		}}},
		Error: failed, RecordError: failed, Logs: []string{"log " + secret}, Hints: []engine.Hint{{Message: secret}}, Context: echo(secret),
		Request: &engine.Request{Actions: []engine.Action{{NodeName: "T", Input: echo(secret)}}},
		SubRuns: []engine.SubRun{{Node: "Model", Error: failed}},
	}, Memory: []node.MemoryAppend{{Session: "s", Messages: []json.RawMessage{echo(secret)}}}}
	require.NoError(t, Value(set(secret), &result))
	raw, err := json.Marshal(result)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "w0rd")
	require.GreaterOrEqual(t, strings.Count(string(raw), Blank), 12)
	file, err := base64.StdEncoding.DecodeString(result.Outputs[0][0].Binary["data"].Data)
	require.NoError(t, err)
	require.Contains(t, string(file), "you sent ")
	require.NotContains(t, string(file), "w0rd")
}

func TestValueWithoutSecretsIsLeftAlone(t *testing.T) {
	raw := json.RawMessage(`{ "kept" : "as it <is>" }`)
	result := node.Result{Result: engine.Result{Outputs: []workflow.Items{{{JSON: raw}}}}}
	require.NoError(t, Value(set(secret), &result))
	require.Equal(t, string(raw), string(result.Outputs[0][0].JSON))
	require.NoError(t, Value((*Set)(nil), &result))
	require.Equal(t, string(raw), string(result.Outputs[0][0].JSON))
}

func TestNumbersThatAreSecrets(t *testing.T) {
	s := set("12345678")
	require.Equal(t, `{"pin":"[secret]","list":["[secret]",1,true,"[secret]"],"n": 1234567}`,
		string(s.JSON([]byte(`{"pin":12345678,"list":[123456789,1,true,"12345678"],"n": 1234567}`))))
	count := struct{ N int }{12345678}
	require.ErrorIs(t, Value(s, &count), ErrNotRemoved, "where only a number can be")
}

func TestEscapesAreNotCut(t *testing.T) {
	s := set("nsecret")
	data := []byte(`{"a":"\nsecret","b":"nsecret"}`)
	require.JSONEq(t, `{"a":"\nsecret","b":"[secret]"}`, string(s.JSON(data)))
}

type loud struct{ text string }

func (l loud) String() string { return l.text }

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&out), zapcore.InfoLevel)
	s := set("hidden-key")
	log := Logger(zap.New(core), s).With(zap.String("with", "hidden-key"))
	log.Debug("hidden-key below the level")
	require.Zero(t, out.Len())
	log.Info("message hidden-key", zap.Error(fmt.Errorf("wrapped: %w", errors.New("hidden-key"))), zap.Any("any", map[string]string{"k": "hidden-key"}),
		zap.Stringer("stringer", loud{"hidden-key"}), zap.ByteString("bytes", []byte("hidden-key")), zap.Strings("list", []string{"hidden-key"}),
		zap.Binary("binary", []byte("hidden-key")), zap.Int("n", 7), zap.String("kept", "other"))
	require.NotContains(t, out.String(), "hidden-key")
	require.NotContains(t, out.String(), base64.StdEncoding.EncodeToString([]byte("hidden-key")))
	require.Contains(t, out.String(), `"n":7,"kept":"other"`)
	require.Equal(t, 8, strings.Count(out.String(), Blank))
}

func benchmarkResult(size int) node.Result {
	items := make(workflow.Items, size/100)
	for i := range items {
		items[i].JSON = fmt.Appendf(nil, `{"id":%d,"text":%q}`, i, strings.Repeat("some words ", 7))
	}
	return node.Result{Result: engine.Result{Outputs: []workflow.Items{items}}}
}

func BenchmarkResultWithoutSecrets(b *testing.B) {
	result := benchmarkResult(10_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := Value(&Set{}, &result); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResultThatHoldsNone(b *testing.B) {
	result := benchmarkResult(10_000)
	s := set("a-secret-of-some-length-0123456789")
	b.ReportAllocs()
	b.SetBytes(10_000)
	for b.Loop() {
		if err := Value(s, &result); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		set("a-secret-of-some-length-0123456789")
	}
}
