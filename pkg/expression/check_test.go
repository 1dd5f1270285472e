package expression

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckCompilesWithoutEvaluating(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	texts := []string{
		"plain {{ text", "={{ $json.a }}", "={{ $json.a.map(x => x * 2) }}", "={{ 1 + }}", "={{ (() => { while (true) {} })() }}",
		"={{ [1 }}", "={{ a b }}", "=Dear {{ $json.name }}, {{ x => }}", "={{ 1; 2 }}", "={{ }}", "={{ 5 // five\n }}", "={{ nobody.knows() }}",
	}
	found, err := e.Check(t.Context(), texts)
	require.NoError(t, err)
	bad := map[string]bool{}
	for i, err := range found {
		if err != nil {
			assert.EqualError(t, err, "invalid syntax")
			bad[texts[i]] = true
		}
	}
	assert.Equal(t, map[string]bool{"={{ 1 + }}": true, "={{ [1 }}": true, "={{ a b }}": true, "=Dear {{ $json.name }}, {{ x => }}": true, "={{ }}": true}, bad)
}

func TestCheckScripts(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	found, err := e.CheckScripts(t.Context(), []string{
		"return $input.all();", "const a = await x(); while (true) {}", "// nothing\nreturn [", "function f() {}\nreturn f // done", "throw 1",
	})
	require.NoError(t, err)
	for i, bad := range []bool{false, false, true, false, false} {
		assert.Equal(t, bad, found[i] != nil, "%d: %v", i, found[i])
	}
}

func TestModules(t *testing.T) {
	assert.Equal(t, []string{"axios", "crypto"}, Modules("const c = require('crypto'), a = require(\"axios\"); // require('fs')\nx.require('y'); require(name)"))
	assert.Empty(t, Modules("return 'require(\"x\")'"))
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	missing, err := e.MissingModules(t.Context(), []string{"crypto", "axios", "no-such"})
	require.NoError(t, err)
	assert.Contains(t, missing, "no-such")
	assert.NotContains(t, missing, "crypto")
}
