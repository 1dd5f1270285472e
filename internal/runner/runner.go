// Package runner executes one job: it turns a queue.Job into a node.Call, runs
// the node type's code and turns whatever happens into a node.Result. Workers
// use it for every job, the coordinator for the cheap nodes it runs itself.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/redact"
	"github.com/reprise-engine/reprise/pkg/credential"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Config is what a Runner lends to node code.
type Config struct {
	Registry  *node.Registry
	Evaluator *expression.Evaluator
	Log       *zap.Logger  // nil: none
	HTTP      *http.Client // nil: http.DefaultClient
	Now       func() time.Time
	// Credentials resolves a credential to its secret data; nil: none are known.
	Credentials func(ctx context.Context, credentialType string, ref workflow.CredentialRef) (map[string]any, error)
	// LoadMemory reads a conversation; nil: conversations are empty.
	LoadMemory func(ctx context.Context, session string, n int) ([]json.RawMessage, error)
	// Tables fulfils requests to the data tables; nil: there are none.
	Tables func(ctx context.Context, r *table.Request) (*table.Answer, error)
	// Files keeps the larger files of items, of which one has MaxFileBytes at most, and those of up to
	// InlineFileBytes stay in their items; 0 is the default of node.Files. nil keeps all in the items.
	Files                         node.FileStore
	MaxFileBytes, InlineFileBytes int64
	// ObserveJob is called around the run of a node's code, which runs with the context that it returns;
	// ObserveModel around questions to models. nil observes nothing.
	ObserveJob   func(ctx context.Context, job *queue.Job, n *workflow.Node, p *queue.Plan) (_ context.Context, end func(*node.Result, error))
	ObserveModel func(ctx context.Context, call *node.ModelCall) (_ context.Context, end func())
	// Python runs the Python of Code nodes; nil refuses it.
	Python PythonRunner
	// MaxResultBytes bounds the JSON of one result; 0 is no bound.
	MaxResultBytes int
}

// Runner executes jobs. It is safe for concurrent use.
type Runner struct {
	config Config
	plans  planCache
	tokens credential.Tokens
}

// New returns a runner.
func New(c Config) *Runner {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Credentials == nil {
		c.Credentials = func(_ context.Context, _ string, ref workflow.CredentialRef) (map[string]any, error) {
			return nil, fmt.Errorf("credential %q (id %s) is not known here", ref.Name, ref.ID)
		}
	}
	if c.LoadMemory == nil {
		c.LoadMemory = func(context.Context, string, int) ([]json.RawMessage, error) { return nil, nil }
	}
	return &Runner{config: c, tokens: credential.Tokens{Now: c.Now}}
}

// ErrStopped is returned by Run when ctx was cancelled before the node was
// done: there is no result, the job may be run elsewhere.
var ErrStopped = errors.New("runner: stopped before the node was done")

// Run executes a job. data is the run data that expressions see; nil means what
// the job brought along. Whatever the node does wrong is in the result; an error
// means that there is none: the job cannot be read, or ctx was cancelled.
func (r *Runner) Run(ctx context.Context, job *queue.Job, data node.RunData) (node.Result, error) {
	plan, err := r.plans.decode(job)
	if err != nil {
		return node.Result{}, fmt.Errorf("job %s: %w", job.ID, err)
	}
	return r.RunPlan(ctx, job, plan, data)
}

// RunPlan is Run for a caller that holds the job's plan already decoded.
func (r *Runner) RunPlan(ctx context.Context, job *queue.Job, plan *Plan, data node.RunData) (result node.Result, err error) {
	n := plan.nodes[plan.Node]
	typ, ok := r.config.Registry.Find(n.Type, n.TypeVersion)
	if !ok {
		return fail(&engine.NodeError{
			Name: "NodeOperationError", NotRetryable: true,
			Message: fmt.Sprintf("Unrecognized node type: %s version %v", n.Type, n.TypeVersion),
		}), nil
	}
	if data == nil {
		data = jobData{job}
	}
	if job.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.UnixMilli(job.Deadline).Sub(r.config.Now()))
		defer cancel()
	}
	if r.config.ObserveJob != nil {
		var end func(*node.Result, error)
		ctx, end = r.config.ObserveJob(ctx, job, n, &plan.Plan)
		defer func() { end(&result, err) }()
	}
	return r.runCode(ctx, job, plan, n, typ, data)
}

// runCode runs a node's code until ctx ends.
func (r *Runner) runCode(ctx context.Context, job *queue.Job, plan *Plan, n *workflow.Node, typ *node.Type, data node.RunData) (node.Result, error) {
	secrets, noted := &redact.Set{}, &customData{}
	call := r.call(job, plan, n, typ, data, secrets, noted)
	result, err := execute(ctx, typ, call)
	if err == nil {
		noted.addTo(result)
		final := r.bounded(withoutSecrets(*result, secrets))
		if final.Error != nil {
			discard(ctx, call)
		}
		return final, nil
	}
	discard(ctx, call)
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fail(&engine.NodeError{Name: "NodeOperationError", Message: "Error: timed out", Reason: engine.ReasonTimeout}), nil
		}
		return node.Result{}, ErrStopped
	}
	failed := fail(nodeError(err))
	if result != nil { // what was done before the failure is still to be seen
		failed.SubRuns, failed.Logs, failed.Hints = result.SubRuns, result.Logs, result.Hints
	}
	noted.addTo(&failed)
	return r.bounded(withoutSecrets(failed, secrets)), nil
}

// discardTimeout bounds the removal of files that no result names.
const discardTimeout = 5 * time.Second

// discard removes the files that a run made and that nobody will know of.
func discard(ctx context.Context, call *node.Call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if err := call.Files.Discard(ctx); err != nil {
		call.Log.Debug("files of a failed run were not removed, they go with the execution", zap.Error(err))
	}
}

// withoutSecrets takes the secrets that the node was given out of all that it answers.
func withoutSecrets(result node.Result, secrets *redact.Set) node.Result {
	if secrets.Empty() {
		return result
	}
	if err := redact.Value(secrets, &result); err != nil {
		return fail(&engine.NodeError{
			Name: "NodeOperationError", NotRetryable: true,
			Message: "The node's output was withheld: it holds a secret of a credential in a place from which it cannot be taken out",
		})
	}
	return result
}

// execute calls the node's code; a panic there is the node's failure.
func execute(ctx context.Context, typ *node.Type, call *node.Call) (result *node.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			call.Log.Error("node code panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			result, err = nil, &engine.NodeError{Name: "NodeOperationError", Message: fmt.Sprintf("internal error in node type %s: %v", typ.Type, p), NotRetryable: true}
		}
	}()
	result, err = typ.Execute(ctx, call)
	if result == nil && err == nil {
		result = &node.Result{}
	}
	return result, err
}

// bounded replaces a result that is too large by an error that says so.
func (r *Runner) bounded(result node.Result) node.Result {
	limit := r.config.MaxResultBytes
	if limit <= 0 {
		return result
	}
	size := 0
	for _, output := range result.Outputs {
		for i := range output {
			size += len(output[i].JSON)
			for _, b := range output[i].Binary {
				size += len(b.Data)
			}
		}
	}
	if size <= limit {
		return result
	}
	failed := fail(&engine.NodeError{
		Name: "NodeOperationError", Reason: engine.ReasonTooLarge, NotRetryable: true,
		Message:     fmt.Sprintf("the node's output has %d bytes, more than the %d allowed", size, limit),
		Description: "Store what is large elsewhere and pass on where it is, return less, or raise the workers' limit (REPRISE_MAX_RESULT_BYTES).",
	})
	failed.SubRuns, failed.Logs, failed.CustomData = result.SubRuns, result.Logs, result.CustomData
	return failed
}

func fail(err *engine.NodeError) node.Result {
	return node.Result{Result: engine.Result{Error: err}}
}

// nodeError is the node failure that err stands for.
func nodeError(err error) *engine.NodeError {
	if failure := (*engine.NodeError)(nil); errors.As(err, &failure) {
		return failure
	}
	if failed := (*expression.Error)(nil); errors.As(err, &failed) {
		return expressionFailure(failed)
	}
	return &engine.NodeError{Name: "NodeOperationError", Message: err.Error()}
}

// expressionFailure is the node failure of an expression, as n8n shows it.
func expressionFailure(e *expression.Error) *engine.NodeError {
	failure := &engine.NodeError{Name: e.Name, Message: e.Message, Description: e.Description, Reason: engine.ReasonExpression}
	if failure.Name == "" {
		failure.Name = "ExpressionError"
	}
	if e.Type != "" {
		failure.Context, _ = json.Marshal(map[string]string{"type": e.Type}) // a string always encodes
	}
	return failure
}

// jobData is the run data that a job brought along.
type jobData struct{ job *queue.Job }

func (d jobData) Runs(name string) int { return d.job.Runs[name] }

func (d jobData) Items(name string, run, output int) (workflow.Items, bool) {
	record, ok := d.job.RunData[name][run]
	if !ok {
		return nil, false
	}
	if output < 0 || output >= len(record.Outputs) {
		return nil, true
	}
	return record.Outputs[output], true
}

func (d jobData) Sources(name string, run int) []*workflow.Source {
	return d.job.RunData[name][run].Source
}

// Plan is a decoded queue.Plan.
type Plan struct {
	queue.Plan
	nodes map[string]*workflow.Node
}

// NewPlan indexes a plan.
func NewPlan(p queue.Plan) (*Plan, error) {
	plan := &Plan{Plan: p, nodes: make(map[string]*workflow.Node, len(p.Nodes))}
	for _, n := range p.Nodes {
		plan.nodes[n.Name] = n
	}
	if plan.nodes[p.Node] == nil {
		return nil, fmt.Errorf("plan lacks its own node %q", p.Node)
	}
	return plan, nil
}

// planCache keeps decoded plans by their hash. It is emptied when it grows
// beyond maxPlans, which only costs decoding them again.
type planCache struct {
	mu    sync.Mutex
	plans map[string]*Plan
}

const maxPlans = 4096

func (c *planCache) decode(job *queue.Job) (*Plan, error) {
	c.mu.Lock()
	plan := c.plans[job.PlanHash]
	c.mu.Unlock()
	if plan != nil {
		return plan, nil
	}
	var p queue.Plan
	if err := json.Unmarshal(job.Plan, &p); err != nil {
		return nil, fmt.Errorf("decode plan: %w", err)
	}
	plan, err := NewPlan(p)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plans == nil || len(c.plans) >= maxPlans {
		c.plans = make(map[string]*Plan)
	}
	c.plans[job.PlanHash] = plan
	return plan, nil
}
