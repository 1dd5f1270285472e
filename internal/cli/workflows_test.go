package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

const (
	withID    = `{"id": "orders", "name": "Lab", "nodes": [{"name": "Start", "type": "n8n-nodes-base.manualTrigger", "typeVersion": 1, "parameters": {}}], "connections": {}}`
	withoutID = `{"name": "Lab", "nodes": [{"name": "Start", "type": "n8n-nodes-base.manualTrigger", "typeVersion": 1, "parameters": {}}], "connections": {}}`
)

func TestWorkflows(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	assert.JSONEq(t, "[]", f.run(t, "workflows", "list", "--output", "json").stdout)
	got := f.run(t, "workflows", "put", file(t, withID))
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, "stored orders Lab\n", got.stdout)
	got = f.run(t, "workflows", "put", file(t, withoutID), "--id", "other", "--output", "json")
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, "other", gjson.Get(got.stdout, "0.id").Str)
	assert.Regexp(t, "orders .* Lab", f.run(t, "workflows", "list").stdout)
	assert.EqualValues(t, 2, gjson.Get(f.run(t, "workflows", "list", "--output", "json").stdout, "#").Int())
	assert.JSONEq(t, withID, f.run(t, "workflows", "get", "orders").stdout)
	got = f.run(t, "workflows", "get", "orders", "--output", "json")
	assert.Equal(t, "h", gjson.Get(got.stdout, "hash").Str)
	assert.Equal(t, "orders", gjson.Get(got.stdout, "document.id").Str)

	f.run(t, "workflows", "get", "nothing").failed(t, 2, `"nothing"`, "reprise workflows list")
	got = f.run(t, "workflows", "delete", "nothing", "orders")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, "deleted orders\n", got.stdout)
	assert.Contains(t, got.stderr, `"nothing"`)

	f.run(t, "workflows", "put", file(t, withoutID)).failed(t, 2, "no id", "--id")
	f.run(t, "workflows", "put", file(t, withID), file(t, withID)).failed(t, 2, `the same id "orders"`)
	f.run(t, "workflows", "put", file(t, withID), file(t, withID), "--id", "a").failed(t, 2, "one file")
	f.run(t, "workflows", "put", file(t, withID), file(t, `{"nodes": [}`)).failed(t, 2, "line 1")
	f.run(t, "workflows", "put", filepath.Join(t.TempDir(), "none.json")).failed(t, 2, "none.json")
	assert.NotContains(t, f.workflows, "orders", "nothing is stored when a file cannot be read")
	f.run(t, "workflows", "put", file(t, withID), "--id", "refused").failed(t, 2, "file.json", "teleporter")
}

// TestReadWorkflowDir: what is no workflow is left out, and said to the log.
func TestReadWorkflowDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("a.json", withID)
	write("named-by-file.JSON", withoutID)
	write("package.json", `{"dependencies": {}}`)
	write("broken.json", `{"nodes": [`)
	write("notes.txt", withID)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.json"), 0o700))
	logs, seen := observer.New(zap.InfoLevel)
	docs, err := readWorkflowDir(dir, zap.New(logs))
	require.NoError(t, err)
	var ids []string
	for _, d := range docs {
		ids = append(ids, d.id)
	}
	assert.Equal(t, []string{"orders", "named-by-file"}, ids)
	assert.Equal(t, 2, seen.FilterMessage("not a workflow, left out").Len())

	write("b.json", withID)
	docs, err = readWorkflowDir(dir, zap.NewNop())
	require.NoError(t, err)
	assert.Len(t, docs, 2, "the same workflow twice is one")
	write("c.json", strings.Replace(withID, `"name"`, `"changed": 1, "name"`, 1))
	docs, err = readWorkflowDir(dir, zap.New(logs))
	require.NoError(t, err)
	assert.Len(t, docs, 1, "which of two is meant cannot be told")
	assert.Equal(t, 1, seen.FilterMessageSnippet("same id").Len())
	_, err = readWorkflowDir(filepath.Join(dir, "nowhere"), zap.NewNop())
	assert.ErrorContains(t, err, "--workflows")
	docs, err = readWorkflowDir("", zap.NewNop())
	require.NoError(t, err)
	assert.Empty(t, docs)
}
