package arch

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func load(t *testing.T, root string) *Source {
	t.Helper()
	s, err := Load(root, Module)
	require.NoError(t, err)
	return s
}

// all is every check of this package.
func all(s *Source) []Violation {
	found := s.Imports(Rules)
	found = append(found, s.Pure("pkg/engine")...)
	found = append(found, s.Comments()...)
	return append(found, s.Commands(CommandLines)...)
}

func TestRepository(t *testing.T) {
	s := load(t, "../..")
	require.Contains(t, s.Packages(), "internal/arch", "the source is that of this repository")
	for _, v := range all(s) {
		t.Error(v)
	}
}

// TestRulesMatch finds rules that a renamed package left behind.
func TestRulesMatch(t *testing.T) {
	s := load(t, "../..")
	for _, r := range Rules {
		found := false
		for _, dir := range s.Packages() {
			found = found || matches(r.Package, dir)
		}
		assert.True(t, found, "no package %s: %s", r.Package, r.Reason)
		assert.NotEmpty(t, r.Reason)
	}
}

func TestModule(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(data), "module "+Module+"\n"))
}

// TestBadSource runs the checks on a small tree that breaks every rule, and
// holds files that only look as if they did.
func TestBadSource(t *testing.T) {
	var got []string
	for _, v := range all(load(t, "testdata/bad")) {
		text := v.String()
		// The reason after the second colon is prose.
		if parts := strings.SplitN(text, ": ", 3); len(parts) == 3 {
			text = parts[0] + ": " + parts[1]
		}
		got = append(got, text)
	}
	assert.ElementsMatch(t, []string{
		"cmd/big/main.go:7: imports pkg/engine",
		"cmd/big/main.go:2: cmd/big has 84 lines, more than 80",
		"internal/runner/runner.go:4: imports github.com/redis/go-redis/v9",
		"internal/worker/worker.go:4: imports pkg/state",
		"pkg/engine/clock.go:5: uses time.Now",
		"pkg/engine/clock.go:9: starts a goroutine",
		"pkg/engine/clock.go:10: has a select",
		"pkg/engine/clock.go:11: uses time.After",
		"pkg/engine/dot.go:1: imports time with a dot, which hides uses of the clock",
		"pkg/engine/engine.go:5: imports context",
		"pkg/engine/engine.go:6: imports crypto/rand",
		"pkg/engine/engine.go:7: imports log/slog",
		"pkg/engine/engine.go:8: imports math/rand/v2",
		"pkg/engine/engine.go:9: imports net/http",
		"pkg/engine/engine.go:10: imports os",
		"pkg/engine/engine.go:12: imports go.uber.org/zap",
		"pkg/engine/engine.go:14: imports pkg/node",
		"pkg/engine/twice.go:2: second package comment of pkg/engine",
		"pkg/expression/expression.go:4: imports pkg/engine",
		"pkg/javascript/javascript.go:4: imports pkg/workflow",
		"pkg/node/node.go:4: imports pkg/queue",
		"pkg/nodes/http/http.go:1: pkg/nodes/http has no package comment",
		"pkg/nodes/http/http.go:3: imports github.com/nats-io/nats.go",
		"pkg/queue/queue.go:4: imports pkg/state",
		"pkg/queue/queue.go:4: imports pkg/state",
		"pkg/state/state.go:4: imports internal/worker",
		"pkg/state/state.go:4: imports internal/worker",
		"pkg/state/state_test.go:3: imports pkg/queue",
		"pkg/workflow/workflow.go:4: imports pkg/engine",
	}, got)
}

func TestMatches(t *testing.T) {
	for name, row := range map[string]struct {
		pattern, pkg string
		want         bool
	}{
		"same":        {"pkg/queue", "pkg/queue", true},
		"below":       {"pkg/queue", "pkg/queue/x", false},
		"all":         {"pkg/...", "pkg/queue/x", true},
		"all, itself": {"pkg/queue/...", "pkg/queue", true},
		"longer name": {"pkg/node/...", "pkg/nodes", false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, row.want, matches(row.pattern, row.pkg))
		})
	}
}
