package engine_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// TestConformance runs testdata/conformance: a file for each assertion of the
// conformance list that the engine alone can show. Its first line says which one,
// and docs/conformance.md is made from these lines.
func TestConformance(t *testing.T) { runSuite(t, "testdata/conformance") }

// TestReports runs testdata/reports: faults that users met in other systems.
// docs/user-reports.md says which file is about which.
func TestReports(t *testing.T) { runSuite(t, "testdata/reports") }

func runSuite(t *testing.T, dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	evaluator, err := expression.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = evaluator.Close() })
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := &suite{evaluator: evaluator}
			datadriven.RunTest(t, path, s.command)
		})
	}
}

// suite adds verbs to those of an execution.
type suite struct {
	*execution
	evaluator *expression.Evaluator
	kept      string
}

func (s *suite) command(t *testing.T, d *datadriven.TestData) string {
	if d.Cmd == "load" {
		// load [mode=manual] [depth=n]: a workflow in the syntax of sketch, for an
		// execution that is n levels below the first.
		w, err := sketch(d.Input)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		mode := "manual"
		d.MaybeScanArgs(t, "mode", &mode)
		s.execution = newExecutionInMode(w, mode)
		d.MaybeScanArgs(t, "depth", &s.state.Meta.Depth)
		return "ok\n"
	}
	if s.execution == nil {
		return "error: nothing is loaded\n"
	}
	switch d.Cmd {
	case "remember":
		// remember: keeps the run data, for compare.
		s.kept = showRun(s.state)
		return "ok\n"
	case "compare":
		// compare: is the run data as it was remembered? Times do not count.
		if now := showRun(s.state); now != s.kept {
			return "different\n" + now
		}
		return "the same\n"
	case "value":
		// value NODE[:run]: what an expression in its parameters gives in its job.
		value, err := s.value(t, d)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return value + "\n"
	case "outcome":
		// outcome NODE[:run]: what became of the question of a gate's run, and its status.
		name, run, _ := strings.Cut(d.CmdArgs[0].Key, ":")
		n, _ := strconv.Atoi(run)
		r := s.state.Record(engine.RunRef{Node: spaced(name), Run: n})
		if r == nil || r.Metadata == nil {
			return "none\n"
		}
		return fmt.Sprintf("%s, %s\n", r.Metadata.Outcome, r.Status)
	case "export":
		// export: the run in n8n's shape, as JSON.
		text, err := json.MarshalIndent(s.state.RunExecutionData(), "", " ")
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return string(text) + "\n"
	case "start-to":
		// start-to: a run up to a node, which the input names in its stored form.
		s.now += 10
		to := &engine.Destination{}
		if err := json.Unmarshal([]byte(d.Input), to); err != nil {
			return "error: " + err.Error() + "\n"
		}
		return s.print(engine.Started{At: s.now, Destination: to})
	}
	return s.execution.command(t, d)
}

// value evaluates an expression as a worker would for the node's job.
func (s *suite) value(t *testing.T, d *datadriven.TestData) (string, error) {
	if len(d.CmdArgs) == 0 {
		return "", fmt.Errorf("the value for which node?")
	}
	id, err := s.target(t, d, d.CmdArgs[0].Key)
	if err != nil {
		return "", err
	}
	e := &s.state.Jobs[id].Entry
	scope := &expression.Scope{
		Node: s.machine.Workflow().Node(e.Node), RunIndex: e.Run,
		Inputs: s.state.Inputs(e), Sources: e.Source, RunData: s.state,
		Nodes: map[string]*workflow.Node{}, Now: time.UnixMilli(s.now),
	}
	for _, n := range s.machine.Workflow().Nodes {
		scope.Nodes[n.Name] = n
	}
	if a := s.state.Action(e); a != nil {
		scope.ToolArguments = a.Input
	}
	raw, err := json.Marshal("=" + strings.TrimSpace(d.Input))
	if err != nil {
		return "", err
	}
	value, err := s.evaluator.Resolve(t.Context(), scope, 0, raw)
	return string(value), err
}
