package nodedocs

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/nodetypes"
)

var rewrite = flag.Bool("rewrite", false, "write docs/nodes.md")

func TestPage(t *testing.T) {
	const path = "../../docs/nodes.md"
	want, err := Page(nodetypes.Registry())
	require.NoError(t, err)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	if string(got) != want {
		t.Errorf("docs/nodes.md is out of date: run go generate ./internal/nodedocs")
	}
}

// The bounds hold where the counts tell the answer.
func TestCoverage(t *testing.T) {
	types, err := readTypes()
	require.NoError(t, err)
	of := func(has func(*counted) bool) Coverage {
		names := map[string]bool{}
		for i := range types {
			names[types[i].name] = has(&types[i])
		}
		c, err := coverage(types, func(name string) bool { return names[name] }, func(name string, _ float64) bool { return names[name] })
		require.NoError(t, err)
		return c
	}
	nothing := of(func(*counted) bool { return false })
	assert.Zero(t, nothing.Nodes)
	assert.Zero(t, nothing.Least)
	assert.Zero(t, nothing.PinnedLeast)

	core := of((*counted).core)
	assert.InDelta(t, allCore, core.Most, 0.001)
	assert.InDelta(t, 99.7, core.PinnedLeast, 0.001, "the end of the order")
	assert.InDelta(t, 100, core.PinnedMost, 1)

	generic := of(func(c *counted) bool { return !c.external() })
	assert.InDelta(t, allGeneric, generic.Most, 0.001)
	// Without one type, at most its workflows are lost, and all of them.
	withoutSet := of(func(c *counted) bool { return c.core() && c.name != "n8n-nodes-base.set" })
	assert.InDelta(t, 99.7-percent(3944), withoutSet.PinnedLeast, 0.001)
	assert.InDelta(t, 100-percent(3944), withoutSet.PinnedMost, 0.001)
	assert.Less(t, withoutSet.Nodes, core.Nodes)
}
