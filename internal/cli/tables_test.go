package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// Tables go from files into Redis and back, as people move them.
func TestTables(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	run := func(args ...string) outcome { return reprise(t, append(args, "--nats", l.stack.NATSURL)...) }
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	got := run("tables", "create", "cli people", "--column", "name", "--column", "age:number")
	require.Zero(t, got.code, got.stderr)
	run("tables", "create", "cli people").failed(t, 2, "already")
	require.Zero(t, run("tables", "create", "cli people", "--if-not-exists").code)
	listed := run("tables", "list", "--output", "json").stdout
	require.JSONEq(t, `[{"name":"name","type":"string"},{"name":"age","type":"number"}]`, gjson.Get(listed, `#(name=="cli people").columns`).Raw)
	require.Regexp(t, `cli people +name:string age:number`, run("tables", "list").stdout)

	// Created by its file, with columns of the types that all values have.
	csv := write("plants.csv", "\ufeffid,name,height,evergreen,code,since\n7,\"Oak, old\",12.5,false,007,2024-01-02\n8,Pine,,true,42,\n")
	got = run("tables", "import", "cli plants", csv, "--column", "since:date")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "inserted 2 rows")
	exported := run("tables", "export", "cli plants", "--format", "json").stdout
	require.Equal(t, `[1,2]`, gjson.Get(exported, "#.id").Raw, "the table gives ids of its own")
	require.Equal(t, "Oak, old", gjson.Get(exported, "0.name").Str)
	require.Equal(t, `[12.5,null]`, gjson.Get(exported, "#.height").Raw)
	require.Equal(t, `[false,true]`, gjson.Get(exported, "#.evergreen").Raw)
	require.Equal(t, `["007","42"]`, gjson.Get(exported, "#.code").Raw, "not all of them are numbers")
	require.Equal(t, "2024-01-02T00:00:00.000Z", gjson.Get(exported, "0.since").Str)

	// What was exported comes back, from either format; more rows than go into one request or page.
	var many []string
	for i := range exportPage + 3 {
		many = append(many, fmt.Sprintf(`{"n":%d}`, i))
	}
	require.Zero(t, run("tables", "import", "cli many", write("many.json", "["+strings.Join(many, ",")+"]")).code)
	for _, name := range []string{"out.csv", "out.json"} {
		file := filepath.Join(dir, name)
		got = run("tables", "export", "cli many", "--file", file)
		require.Zero(t, got.code, got.stderr)
		again := "cli again " + name
		require.Zero(t, run("tables", "import", again, file).code)
		numbers := gjson.Get(run("tables", "export", again, "--format", "json").stdout, "#.n").Array()
		require.Len(t, numbers, exportPage+3)
		for i, n := range numbers {
			require.Equal(t, fmt.Sprint(i), n.Raw)
		}
		require.Zero(t, run("tables", "drop", again).code)
	}

	// Bad input.
	run("tables", "create", "x", "--column", "a b").failed(t, 2, "a b")
	run("tables", "create", "x", "--column", "a:json").failed(t, 2, "json", "boolean")
	run("tables", "import", "cli people", write("bad.csv", "name,age\nAda,36\nBob,old\n")).failed(t, 2, "row 2", "after 1", `"age"`)
	require.Equal(t, `["Ada"]`, gjson.Get(run("tables", "export", "cli people", "--format", "json").stdout, "#.name").Raw)
	run("tables", "import", "cli people", write("other.csv", "hat\nred\n")).failed(t, 2, `"hat"`)
	run("tables", "import", "cli people", write("empty.csv", "")).failed(t, 2, "empty")
	run("tables", "import", "cli people", write("ragged.csv", "a,b\n1\n")).failed(t, 2, "ragged.csv")
	run("tables", "import", "cli people", write("none.json", `{"a":1}`)).failed(t, 2, "list")
	run("tables", "import", "cli people", write("one.json", `[1]`)).failed(t, 2, "row 1")
	run("tables", "import", "cli people", write("x.yaml", "")).failed(t, 2, "yaml")
	run("tables", "export", "cli nothing").failed(t, 2, `"cli nothing"`, "reprise tables create")

	got = run("tables", "drop", "cli nothing", "cli people", "cli plants", "cli many")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, `"cli nothing"`)
	assert.NotContains(t, run("tables", "list").stdout, "cli ")
}
