package simulation

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// plantedBug is a mistake that the simulation must find. It is made in a copy of
// one file, which takes the place of the file when the simulation is built.
type plantedBug struct {
	name string
	file string // below the module's root
	// before is in the file exactly once.
	before, after string
	// seeds within which it must be found.
	seeds int
	// short ones are looked for among all other tests.
	short bool
}

const (
	events    = "internal/coordinator/events.go"
	storeFile = "internal/simulation/memstore/memstore.go"
)

var plantedBugs = []plantedBug{
	{
		name: "commit without version check", file: storeFile, seeds: 40, short: true,
		before: "case x != nil && x.version != c.Version:", after: "case x != nil && x.version != c.Version && creates:",
	},
	{
		name: "result acknowledged before its commit", file: events, seeds: 200,
		before: "\tc.hand(&work{\n\t\tid: r.Execution,\n\t\thandle: func(x *execution) error {\n\t\t\tif job := x.state.Jobs[r.Job]; job != nil {\n\t\t\t\tfor",
		after:  "\tc.ack(r.Ack, r.Job)\n\treply(queue.Reply{Verdict: queue.VerdictOK})\n\tc.hand(&work{\n\t\tid: r.Execution,\n\t\thandle: func(x *execution) error {\n\t\t\tif job := x.state.Jobs[r.Job]; job != nil {\n\t\t\t\tfor",
	},
	{
		name: "lost timer", file: "internal/coordinator/execution.go", seeds: 20,
		before: "x.steps.Timers = append(x.steps.Timers, step.Timers...)", after: "_ = step.Timers",
	},
	{
		name: "job not published again", file: events, seeds: 60,
		before: "x.republish, x.swept = true, true", after: "x.swept = true",
	},
	{
		name: "redelivery question skipped", file: "internal/worker/worker.go", seeds: 60, short: true,
		before: "return d.Deliveries() > 1 || job.Confirm ||", after: "return d.Deliveries() > 1000 || job.Confirm && d.Deliveries() > 1000 || d.Deliveries() > 1000 &&",
	},
	{
		name: "published again as if for the first time", file: events, seeds: 200,
		before: "again.Confirm = true", after: "again.Confirm = false",
	},
	{
		name: "parent not told after a crash", file: "internal/coordinator/outbox.go", seeds: 400,
		before: "return meta.Parent != nil && !meta.Parent.Detached || len(meta.Orphans) > 0", after: "return len(meta.Orphans) > 0",
	},
	{
		name: "decision decided twice", file: "internal/coordinator/approvals.go", seeds: 40,
		before: "\t\t\treturn notOpen(x.state, r)\n", after: "\t\t\treturn nil\n",
	},
	{
		name: "stale memory trusted", file: "internal/coordinator/execution.go", seeds: 200,
		before: "if !x.current {", after: "if false && !x.current {",
	},
	{
		name: "conversation grows twice", file: events, seeds: 60,
		before: `fmt.Sprintf("%s:%s:%d:%d", x.id,`, after: `c.token() + fmt.Sprintf("%s:%s:%d:%d", x.id,`,
	},
	{
		name: "sweep forgets what its group has done", file: events, seeds: 200,
		before: "x.dirty = x.dirty || x.idle()", after: "x.dirty = x.idle()",
	},
	{
		name: "place in a gate never given up", file: "internal/coordinator/gate.go", seeds: 20,
		before: "Op: state.GateLeave, Gate: gate, Execution: id}", after: "Op: state.GateLeave, Gate: gate}",
	},
	{
		name: "lane waits for itself", file: "internal/coordinator/gate.go", seeds: 200,
		before: "c.background(func() { c.entered(meta.ID, mine, took, err) })", after: "c.entered(meta.ID, mine, took, err)",
	},
	{
		name: "job under a rate limit forgotten", file: "internal/coordinator/dispatch.go", seeds: 20,
		before: "\td.due.push(e)\n\td.kick()\n", after: "\td.kick()\n",
	},
	{
		name: "data table changed twice", file: "pkg/table/apply.go", seeds: 60,
		before: "results, err := d.kept(kept)", after: "results, err := d.kept(nil)",
	},
	{
		name: "retry under a new key", file: "pkg/engine/dispatch.go", seeds: 60,
		before: "job.IdempotencyKey = job.Entry.Key", after: "_ = job.Entry.Key",
	},
}

var foundSeed = regexp.MustCompile(`seed (\d+): (.*)`)

// TestPlantedBugs builds the simulation with each bug and expects it to fail.
// `make simulate-bugs` does it for all of them.
func TestPlantedBugs(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, bug := range plantedBugs {
		if *flagBugs == "" && !bug.short || *flagBugs != "" && *flagBugs != "all" && !strings.Contains(","+*flagBugs+",", ","+bug.name+",") {
			continue
		}
		t.Run(bug.name, func(t *testing.T) {
			binary := bug.build(t, root)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, binary, "-test.run", "^TestSimulation$", "-first", "-seeds", strconv.Itoa(bug.seeds)) //nolint:gosec // built above
			run.Dir = filepath.Join(root, "internal/simulation")
			out, err := run.CombinedOutput()
			found := foundSeed.FindSubmatch(out)
			if err == nil || found == nil {
				t.Fatalf("not found within %d seeds (%v):\n%.2000s", bug.seeds, err, out)
			}
			// Without the bug the same seed must pass, or it was something else that was found.
			seed, err := strconv.ParseUint(string(found[1]), 10, 64)
			require.NoError(t, err)
			require.NoError(t, simulate(t, seed, *flagExecutions, nil).failure, "seed %d fails without the bug, too", seed)
			t.Logf("found by seed %d: %.160s", seed, found[2])
		})
	}
}

// build compiles the simulation with the bug.
func (b plantedBug) build(t *testing.T, root string) string {
	t.Helper()
	file, dir := filepath.Join(root, b.file), t.TempDir()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), b.before), "%s does not have the text exactly once that the bug %q changes: bring plantedBugs up to date", b.file, b.name)
	changed := filepath.Join(dir, "changed.go")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(source), b.before, b.after, 1)), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	binary := filepath.Join(dir, "simulation.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", binary, "./internal/simulation") //nolint:gosec // our own paths
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "build with the bug: %s", out)
	return binary
}
