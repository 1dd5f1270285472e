package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestImportActivateExport(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "inside"), 0o700))
	for name, text := range map[string]string{
		"a.json": withID, "inside/by name.json": withoutID, "notes.txt": "no workflow", "inside/list.json": `[` + withoutID + `]`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	got := f.run(t, "workflows", "import", dir)
	assert.Equal(t, 2, got.code, "one of a list has no id")
	assert.Contains(t, got.stderr, "list.json, workflow 1 has no id")
	assert.Equal(t, "stored orders Lab\nstored by name Lab\n", got.stdout)

	got = f.run(t, "workflows", "activate", "orders", "nothing")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, "activated orders\n", got.stdout)
	assert.Regexp(t, "orders .* yes .* Lab", f.run(t, "workflows", "list").stdout)
	got = f.run(t, "workflows", "export")
	require.Zero(t, got.code, got.stderr)
	assert.True(t, gjson.Get(got.stdout, `#(id="orders").active`).Bool(), got.stdout)
	assert.False(t, gjson.Get(got.stdout, `#(id="by name").active`).Bool())
	assert.Equal(t, "Start", gjson.Get(got.stdout, `#(id="by name").nodes.0.name`).Str)

	out := filepath.Join(t.TempDir(), "backup")
	require.Zero(t, f.run(t, "workflows", "export", "--dir", out).code)
	files, err := workflowFiles(out)
	require.NoError(t, err)
	require.Len(t, files, 2)
	got = f.run(t, "workflows", "import", out, "--activate", "--output", "json")
	require.Zero(t, got.code, got.stderr)
	assert.JSONEq(t, "[true,true]", gjson.Get(got.stdout, "#.active").Raw)
	assert.Equal(t, "deactivated orders\n", f.run(t, "workflows", "deactivate", "orders").stdout)
	assert.False(t, f.workflows["orders"].Active)

	f.run(t, "workflows", "import", filepath.Join(dir, "none")).failed(t, 2, "none")
	f.run(t, "workflows", "import", filepath.Join(dir, "a.json"), dir).failed(t, 2, `the same id "orders"`)
	f.run(t, "workflows", "import", t.TempDir()).failed(t, 2, "no workflow was found")
}
