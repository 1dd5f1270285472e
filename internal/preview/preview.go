// Package preview finds out what a node of a workflow would be given, so that its
// expressions can be evaluated without running the workflow for real.
//
// Up runs the nodes before it in this process, on the same engine and with the same
// node code as a fleet does, but only those that touch nothing outside: cheap nodes that
// shape items, and Code. What acts on the world (HTTP, mail, models …) must have pinned
// data; FromRunData takes the data of a run that happened instead.
package preview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Config of a preview.
type Config struct {
	Registry  *node.Registry
	Evaluator *expression.Evaluator
	Now       func() time.Time // nil: time.Now
	// Input is what the trigger puts out, nil for an empty item.
	Input workflow.Items
}

// Data is what a node is given.
type Data struct {
	Workflow *workflow.Workflow
	Node     *workflow.Node
	RunIndex int
	Inputs   []workflow.Items
	Sources  []*workflow.Source
	RunData  expression.RunData
}

// maxSteps bounds the runs of nodes, for workflows that loop for ever.
const maxSteps = 10_000

// Up runs a workflow until the named node gets its input. A sub-node (a model, a
// tool) is given what the node gets that it is attached to.
//
// The error names what stands in the way: a node before it that acts outside and has no
// pinned data, one that failed, or that no item comes so far.
func Up(ctx context.Context, w *workflow.Workflow, name string, c Config) (*Data, error) {
	n := w.Node(name)
	if n == nil {
		return nil, unknown(w, name)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	u := &up{
		config: c, workflow: w, node: n, fed: fedNode(w, name),
		machine: engine.New(w, c.Registry),
		state:   engine.NewState(engine.Meta{ID: "preview", Mode: "manual"}),
		runner:  runner.New(runner.Config{Registry: c.Registry, Evaluator: c.Evaluator, Now: c.Now, HTTP: &http.Client{Transport: offline{}}}),
		skipped: map[string]bool{},
	}
	return u.run(ctx)
}

func unknown(w *workflow.Workflow, name string) error {
	names := make([]string, len(w.Nodes))
	for i, n := range w.Nodes {
		names[i] = fmt.Sprintf("%q", n.Name)
	}
	return fmt.Errorf("the workflow has no node %q; it has %s", name, strings.Join(names, ", "))
}

// fedNode is the node of the main flow whose input a node sees.
func fedNode(w *workflow.Workflow, name string) string {
	seen := map[string]bool{}
	for !seen[name] {
		seen[name] = true
		user := attachedTo(w, name)
		if user == "" {
			return name
		}
		name = user
	}
	return name
}

func attachedTo(w *workflow.Workflow, name string) string {
	for _, kind := range []string{
		workflow.LanguageModel, workflow.Memory, workflow.Tool, workflow.OutputParser,
		"ai_embedding", "ai_document", "ai_textSplitter", "ai_vectorStore", "ai_retriever", "ai_reranker",
	} {
		for _, targets := range w.Targets(name, kind) {
			for _, t := range targets {
				if w.Node(t.Node) != nil {
					return t.Node
				}
			}
		}
	}
	return ""
}

// up is one preview.
type up struct {
	config   Config
	workflow *workflow.Workflow
	node     *workflow.Node
	fed      string
	machine  *engine.Machine
	state    *engine.State
	runner   *runner.Runner
	skipped  map[string]bool // nodes that act outside and were not run
}

func (u *up) now() int64 { return u.config.Now().UnixMilli() }

func (u *up) run(ctx context.Context) (*Data, error) {
	if trigger := u.trigger(); trigger != nil {
		return trigger, nil
	}
	step, err := u.machine.Apply(u.state, engine.Started{At: u.now(), Input: u.config.Input})
	if err != nil {
		return nil, fmt.Errorf("begin the workflow: %w", err)
	}
	jobs := step.Jobs
	for range maxSteps {
		if len(jobs) == 0 {
			return nil, u.notReached()
		}
		job := jobs[0]
		jobs = jobs[1:]
		if job.Entry.Node == u.fed {
			return &Data{
				Workflow: u.workflow, Node: u.node, RunIndex: job.Entry.Run,
				Inputs: u.state.Inputs(&job.Entry), Sources: job.Entry.Source,
				RunData: visible{u.state, u.skipped},
			}, nil
		}
		result, err := u.result(ctx, &job)
		if err != nil {
			return nil, err
		}
		if step, err = u.machine.Apply(u.state, engine.NodeFinished{At: u.now(), Job: job.ID, Result: result}); err != nil {
			return nil, fmt.Errorf("run %q: %w", job.Entry.Node, err)
		}
		jobs = append(jobs, step.Jobs...)
	}
	return nil, fmt.Errorf("nothing came to %q in %d runs of other nodes: the workflow seems to loop; give --run-data", u.fed, maxSteps)
}

// trigger is the data of a node that the execution begins with, nil for other nodes.
func (u *up) trigger() *Data {
	typ, ok := u.config.Registry.Find(u.node.Type, u.node.TypeVersion)
	if !ok || !typ.Trigger {
		return nil
	}
	input := u.config.Input
	if input == nil {
		input = workflow.Items{{JSON: []byte("{}")}}
	}
	return &Data{Workflow: u.workflow, Node: u.node, Inputs: []workflow.Items{input}, RunData: visible{u.state, nil}}
}

// result runs a job if it does nothing outside. A node that is not run puts out nothing,
// which matters to no one as long as it is on no way to the node that is looked at.
func (u *up) result(ctx context.Context, job *engine.Job) (engine.Result, error) {
	n := u.workflow.Node(job.Entry.Node)
	if !u.harmless(n) {
		if slices.Contains(u.workflow.Ancestors(u.fed), n.Name) {
			return engine.Result{}, fmt.Errorf("node %q (%s) acts outside and is not run here: pin its data, or give the data of a run "+
				"with --run-data (the output of reprise run --output json)", n.Name, n.Type)
		}
		u.skipped[n.Name] = true
		return engine.Result{}, nil
	}
	plan, err := runner.NewPlan(queue.Plan{
		WorkflowID: u.workflow.ID, WorkflowName: u.workflow.Name, Timezone: u.workflow.Settings.Timezone,
		Node: n.Name, Nodes: u.workflow.Nodes,
	})
	if err != nil {
		return engine.Result{}, fmt.Errorf("run %q: %w", n.Name, err)
	}
	result, err := u.runner.RunPlan(ctx, &queue.Job{
		ID: job.ID, Execution: u.state.Meta.ID, Mode: u.state.Meta.Mode, RunIndex: job.Entry.Run, Attempt: job.Attempt,
		Inputs: u.state.Inputs(&job.Entry), Source: job.Entry.Source, Context: u.state.Context[n.Name],
	}, plan, visible{u.state, u.skipped})
	if err != nil {
		return engine.Result{}, fmt.Errorf("run %q: %w", n.Name, err)
	}
	if result.Error != nil {
		result.Error.NotRetryable = true // trying again would only take time
	}
	return result.Result, nil
}

// harmless reports whether a node does nothing outside this process.
func (u *up) harmless(n *workflow.Node) bool {
	typ, ok := u.config.Registry.Find(n.Type, n.TypeVersion)
	if !ok || typ.Waits || typ.SubNodes != nil || typ.Once != nil && typ.Once(n) {
		return false
	}
	return typ.Inline || n.Type == "n8n-nodes-base.code" || n.Type == "n8n-nodes-base.aiTransform"
}

// offline sends nothing: a script may ask for a request in a way that reading it does not show.
type offline struct{}

// RoundTrip implements http.RoundTripper.
func (offline) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no requests are sent here; give the data of a run with --run-data")
}

func (u *up) notReached() error {
	if failure := u.state.Meta.Error; failure != nil {
		return fmt.Errorf("nothing comes to %q: node %q failed: %s", u.fed, failure.Node, failure.Message)
	}
	ran := slices.Sorted(maps.Keys(u.state.Run))
	if u.node.Disabled {
		return fmt.Errorf("node %q is disabled and never run", u.node.Name)
	}
	return fmt.Errorf("no items come to %q in this workflow (these nodes ran: %s); give --input for its trigger, or --run-data",
		u.fed, strings.Join(ran, ", "))
}

// visible is the run data without the nodes that were left out.
type visible struct {
	*engine.State
	without map[string]bool
}

func (v visible) Runs(name string) int {
	if v.without[name] {
		return 0
	}
	return v.State.Runs(name)
}

// Items is that of the state, but an output that the node does not have is none: asking for
// it by number is an error in n8n.
func (v visible) Items(name string, run, output int) (workflow.Items, bool) {
	r := v.Record(engine.RunRef{Node: name, Run: run})
	if r == nil || v.without[name] || output < 0 || output >= len(r.Data[workflow.Main]) {
		return nil, false
	}
	return r.Data[workflow.Main][output], true
}
