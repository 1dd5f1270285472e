package disk

import (
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func nodeType(t *testing.T, name string, dirs ...string) *node.Type {
	t.Helper()
	for _, kind := range (Config{Folders: dirs}).Types() {
		if kind.Type == base+name {
			return kind
		}
	}
	t.Fatalf("no node type %s", name)
	return nil
}

func write(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(content), 0o644))
}

func content(t *testing.T, file workflow.Binary) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(file.Data)
	require.NoError(t, err)
	return string(data)
}

func withFile(object, text string) workflow.Items {
	items := nodestest.Items(object)
	items[0].Binary = map[string]workflow.Binary{"data": {FileName: "f", Data: base64.StdEncoding.EncodeToString([]byte(text))}}
	return items
}

func failure(t *testing.T, kind *node.Type, parameters string, items workflow.Items) string {
	t.Helper()
	_, err := kind.Execute(t.Context(), nodestest.Call(kind, parameters, items))
	require.Error(t, err)
	return err.Error()
}

func q(text string) string { return strconv.Quote(text) }

func TestReadsFilesOfPatterns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt", "c.json", "sub/d.txt", "sub/deep/e.txt", ".hidden.txt", "odd[1].txt"} {
		write(t, filepath.Join(dir, name), name)
	}
	outside := filepath.Join(t.TempDir(), "secret.txt")
	write(t, outside, "secret")
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "leak.txt")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "leaks")))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "within.txt")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o644))
	kind := nodeType(t, "readWriteFile", dir)
	for selector, want := range map[string][]string{
		"a.txt":             {"a.txt"},
		dir + "/a.txt":      {"a.txt"},
		dir + "/x/../a.txt": {"a.txt"},
		"*.txt":             {"a.txt", "b.txt", "odd[1].txt", "a.txt"},
		dir + "/**/*.txt":   {"a.txt", "b.txt", "odd[1].txt", "sub/d.txt", "sub/deep/e.txt", "a.txt"},
		"?.{txt,json}":      {"a.txt", "b.txt", "c.json"},
		"[ab].txt":          {"a.txt", "b.txt"},
		"odd[1].txt":        {"odd[1].txt"},
		"none.txt":          {},
		"none/*.txt":        {},
		"sub":               {},
	} {
		t.Run(selector, func(t *testing.T) {
			items := nodestest.Run(t, kind, `{"fileSelector":`+q(selector)+`}`, nodestest.Items(`{"k":1}`))[0]
			got := []string{}
			for _, item := range items {
				got = append(got, content(t, item.Binary["data"]))
				require.Equal(t, workflow.Paired(0), item.PairedItem)
			}
			require.Equal(t, want, got)
		})
	}
	items := nodestest.Run(t, kind, `{"fileSelector":"c.json"}`, nodestest.Items(`{"k":1}`))[0]
	require.JSONEq(t, `{"mimeType":"application/json","fileType":"json","fileName":"c.json","directory":`+q(dir)+`,"fileExtension":"json","fileSize":"6 B"}`, string(items[0].JSON))
	items = nodestest.Run(t, kind, `{"fileSelector":"c.json","options":{"fileName":"n.bin","fileExtension":"bin","mimeType":"a/b","dataPropertyName":"x"}}`, nodestest.Items(`{}`))[0]
	file := items[0].Binary["x"]
	require.Equal(t, []string{"n.bin", "bin", "a/b"}, []string{file.FileName, file.FileExtension, file.MimeType})

	old := nodeType(t, "readBinaryFiles", dir)
	items = nodestest.Run(t, old, `{"fileSelector":"[ab].txt","dataPropertyName":"f"}`, nodestest.Items(`{"k":1}`, `{"k":2}`))[0]
	require.Len(t, items, 2)
	require.Equal(t, "b.txt", content(t, items[1].Binary["f"]))

	one := nodeType(t, "readBinaryFile", dir)
	items = nodestest.Run(t, one, `{"filePath":"={{ $json.p }}","dataPropertyName":"f"}`, nodestest.Items(`{"p":"a.txt"}`, `{"p":"within.txt"}`))[0]
	require.Equal(t, `{"p":"a.txt"}`, string(items[0].JSON))
	require.Equal(t, "a.txt", content(t, items[1].Binary["f"]))
	for name, want := range map[string]string{
		"none.txt": "no such file", "leak.txt": "escapes", "leaks/secret.txt": "escapes", "pipe.txt": "no regular file", "sub": "no regular file",
		outside: Setting, "../x": Setting, "": "no path", dir + "-beside/x": Setting, "a\x00b": "zero byte",
	} {
		require.Contains(t, failure(t, one, `{"filePath":`+jsonText(name)+`}`, nodestest.Items(`{}`)), want, "%q", name)
	}
	require.Contains(t, failure(t, kind, `{"fileSelector":"leak.txt"}`, nodestest.Items(`{}`)), "escapes")
	require.Contains(t, failure(t, kind, `{"fileSelector":"/etc/*"}`, nodestest.Items(`{}`)), Setting)
	require.Contains(t, failure(t, kind, `{"fileSelector":"[a"}`, nodestest.Items(`{}`)), "not valid")
	require.Contains(t, failure(t, kind, `{"operation":"move"}`, nodestest.Items(`{}`)), "choose read or write")
}

func jsonText(text string) string { return strings.ReplaceAll(q(text), `\x00`, `\u0000`) }

func TestWithoutFoldersEverythingIsRefused(t *testing.T) {
	for name, parameters := range map[string]string{
		"readWriteFile": `{"fileSelector":"/etc/hostname"}`, "readBinaryFile": `{"filePath":"/etc/hostname"}`,
		"readBinaryFiles": `{"fileSelector":"/etc/*"}`, "writeBinaryFile": `{"fileName":"/tmp/x"}`,
	} {
		for _, dirs := range [][]string{nil, {""}, {" "}} {
			require.Contains(t, failure(t, nodeType(t, name, dirs...), parameters, withFile(`{}`, "x")), "can allow folders with "+Setting, name)
		}
	}
	kind := nodeType(t, "readBinaryFile")
	call := nodestest.Call(kind, `{"filePath":"/x"}`, nodestest.Items(`{}`))
	call.Node.OnError = workflow.OnErrorContinue
	result, err := kind.Execute(t.Context(), call)
	require.NoError(t, err)
	require.Contains(t, string(result.Outputs[0][0].JSON), Setting)
}

func TestWrites(t *testing.T) {
	dir, outer := t.TempDir(), t.TempDir()
	target := filepath.Join(dir, "x.txt")
	for _, name := range []string{"readWriteFile", "writeBinaryFile"} {
		kind := nodeType(t, name, dir)
		run := func(parameters, text string) workflow.Item {
			return nodestest.Run(t, kind, parameters, withFile(`{"k":1}`, text))[0][0]
		}
		item := run(`{"operation":"write","fileName":`+q(target)+`}`, "one")
		require.JSONEq(t, `{"k":1,"fileName":`+q(target)+`}`, string(item.JSON))
		require.Contains(t, item.Binary, "data")
		require.NoError(t, os.Chmod(target, 0o600))
		run(`{"operation":"write","fileName":"x.txt"}`, "two")
		info, err := os.Stat(target)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "the file keeps its mode")
		run(`{"operation":"write","fileName":"x.txt","options":{"append":true}}`, " three")
		data, err := os.ReadFile(target)
		require.NoError(t, err)
		require.Equal(t, "two three", string(data))
		run(`{"operation":"write","fileName":"new-`+name+`","options":{"append":true}}`, "first")

		require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
		require.NoError(t, os.Symlink(filepath.Join(outer, "made.txt"), filepath.Join(dir, "out")))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "outdir")))
		require.NoError(t, os.Symlink(outer, filepath.Join(dir, "outdir")))
		for path, want := range map[string]string{
			"out": "escapes", "outdir/x": "escapes", "nodir/x": "no such file", "/etc/x": Setting, "../x": Setting, ".": "no regular file",
		} {
			for _, add := range []string{"false", "true"} {
				got := failure(t, kind, `{"operation":"write","fileName":`+q(path)+`,"options":{"append":`+add+`}}`, withFile(`{}`, "x"))
				require.Contains(t, got, want, "%s, append %s", path, add)
				require.Contains(t, got, "is not writable")
			}
		}
		require.Contains(t, failure(t, kind, `{"operation":"write","fileName":"x.txt","dataPropertyName":"no"}`, withFile(`{}`, "x")), "binary file 'no', but none was found [item 0]")
	}
	left, err := filepath.Glob(filepath.Join(outer, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	// A link within the folder stays one.
	require.NoError(t, os.Symlink("x.txt", filepath.Join(dir, "link")))
	nodestest.Run(t, nodeType(t, "writeBinaryFile", dir), `{"fileName":"link"}`, withFile(`{}`, "via"))
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "via", string(data))
}

// A write that fails in the middle leaves what was there, and nothing beside it.
func TestFailedWritesLeaveTheFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "x")
	write(t, target, "before")
	p, err := newFolders([]string{dir}).find("x")
	require.NoError(t, err)
	broken := errors.New("the store is gone")
	for _, add := range []bool{false, true} {
		require.ErrorIs(t, p.write(io.MultiReader(strings.NewReader("half"), brokenReader{broken}), add, 100), broken)
		require.ErrorIs(t, p.write(strings.NewReader("much too long"), add, 8), node.ErrFileTooLarge)
		data, err := os.ReadFile(target)
		require.NoError(t, err)
		require.Equal(t, "before", string(data))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "big"), strings.Repeat("x", 100))
	kind := nodeType(t, "readWriteFile", dir)
	call := nodestest.Call(kind, `{"fileSelector":"big"}`, nodestest.Items(`{}`))
	call.Files = &node.Files{Store: &node.MemoryFiles{}, Execution: "e", InlineBytes: 1, MaxBytes: 50}
	_, err := kind.Execute(t.Context(), call)
	require.ErrorContains(t, err, "REPRISE_MAX_FILE_BYTES")
	call.Files = &node.Files{Store: &node.MemoryFiles{}, Execution: "e", InlineBytes: 1, MaxBytes: 150}
	read, err := kind.Execute(t.Context(), call)
	require.NoError(t, err)
	require.NotEmpty(t, read.Outputs[0][0].Binary["data"].ID)
	again := nodestest.Call(kind, `{"operation":"write","fileName":"big","options":{"append":true}}`, read.Outputs[0])
	again.Files = call.Files
	_, err = kind.Execute(t.Context(), again)
	require.ErrorContains(t, err, "REPRISE_MAX_FILE_BYTES")
}

func TestInnermostFolder(t *testing.T) {
	f := newFolders([]string{"/a", "/a/b", "/c"})
	for name, want := range map[string]place{"/a/b/x": {"/a/b", "x"}, "/a/x": {"/a", "x"}, "y": {"/a", "y"}, "/a/b": {"/a/b", "."}} {
		got, err := f.find(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := f.find("/a/../d")
	require.ErrorIs(t, err, errOutside)
}

func TestAppendingIsNotRepeated(t *testing.T) {
	kind := nodeType(t, "readWriteFile", "/a")
	for parameters, want := range map[string]bool{`{}`: false, `{"options":{"append":true}}`: true, `{"options":{"append":"={{ $json.a }}"}}`: true, `{"options":{"append":false}}`: false} {
		require.Equal(t, want, kind.Once(&workflow.Node{Parameters: []byte(parameters)}), parameters)
	}
}
