package http

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const largeFile = 3<<20 + 11

// fileService gives out a large file, and tells of what it is sent how much and what it was.
func fileService(t *testing.T) *httptest.Server {
	t.Helper()
	mux := nethttp.NewServeMux()
	mux.HandleFunc("/large.bin", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.CopyN(w, rand.NewChaCha8([32]byte{1}), largeFile)
	})
	mux.HandleFunc("/moved", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Redirect(w, r, "/hash", nethttp.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/hash", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		sum := sha256.New()
		var body io.Reader = r.Body
		field := ""
		if r.FormValue("a") != "" { // parses the form, if it is one
			file, header, err := r.FormFile("f")
			if err != nil {
				nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
				return
			}
			defer file.Close()
			body, field = file, header.Filename
		}
		n, err := io.Copy(sum, body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"hash":"%x","bytes":%d,"length":%d,"file":%q,"a":%q,"error":"%v"}`, sum.Sum(nil), n, r.ContentLength, field, r.FormValue("a"), err)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func largeHash(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	_, err := io.CopyN(sum, rand.NewChaCha8([32]byte{1}), largeFile)
	require.NoError(t, err)
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func TestFilesAreKeptAndSentByReference(t *testing.T) {
	server := fileService(t)
	store := &node.MemoryFiles{}
	files := &node.Files{Store: store, Execution: "exec-1"}
	run := func(parameters string, input workflow.Item) (workflow.Items, error) {
		// Answers of the run are bounded below the file's size: it does not count as one.
		call := nodestest.Call(Config{MaxResponseBytes: 1 << 20}.Types()[0], strings.ReplaceAll(parameters, "BASE", server.URL), workflow.Items{input})
		call.HTTP, call.Files = server.Client(), files
		result, err := call.Type.Execute(t.Context(), call)
		if err != nil {
			return nil, err
		}
		return result.Outputs[0], nil
	}
	got, err := run(`{"url":"BASE/large.bin"}`, workflow.Item{JSON: []byte(`{}`)})
	require.NoError(t, err)
	file := got[0].Binary["data"]
	require.Equal(t, workflow.Binary{
		MimeType: "application/octet-stream", FileExtension: "bin", FileName: "large.bin", FileSize: "3.15 MB",
		Data: "memory", ID: file.ID, Bytes: largeFile,
	}, file)
	require.Equal(t, 1, store.Len())

	for name, parameters := range map[string]string{
		"body":       `{"method":"POST","url":"BASE/hash","sendBody":true,"contentType":"binaryData"}`,
		"redirected": `{"method":"POST","url":"BASE/moved","sendBody":true,"contentType":"binaryData"}`,
		"form": `{"method":"POST","url":"BASE/hash","sendBody":true,"contentType":"multipart-form-data","bodyParameters":{"parameters":[
			{"parameterType":"formData","name":"a","value":"1"},{"parameterType":"formBinaryData","name":"f","inputDataFieldName":"data"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := run(parameters, got[0])
			require.NoError(t, err)
			said := gjson.ParseBytes(answer[0].JSON)
			require.Equal(t, largeHash(t), said.Get("hash").Str, said.Raw)
			require.EqualValues(t, largeFile, said.Get("bytes").Int())
			require.Greater(t, said.Get("length").Int(), int64(largeFile-1), "its length is told")
		})
	}

	require.NoError(t, files.Discard(t.Context()))
	require.Zero(t, store.Len())
	_, err = run(`{"method":"POST","url":"BASE/hash","sendBody":true,"contentType":"binaryData"}`, got[0])
	require.ErrorContains(t, err, "kept no longer")

	files.MaxBytes = 1 << 20
	_, err = run(`{"url":"BASE/large.bin"}`, workflow.Item{JSON: []byte(`{}`)})
	var failure *engine.NodeError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, engine.ReasonTooLarge, failure.Reason)
	require.Contains(t, failure.Message, "REPRISE_MAX_FILE_BYTES")
	require.Zero(t, store.Len())
}
