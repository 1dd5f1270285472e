package http

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// maxInFlight bounds the requests of a node that wait at once when it is not
// told to send them in batches.
const maxInFlight = 50

// execution is one run of a node.
type execution struct {
	Config
	call  *node.Call
	input workflow.Items
	// continues: a failed item carries its error on, instead of failing the node.
	continues bool

	// read evaluates the request of an item; output makes items of the answer.
	read   func(*parameters) *request
	output func(resp *response, o options, input workflow.Item, index int) (workflow.Items, error)

	// auth caches the credential, which is the same for every item.
	auth *secrets
	// received counts the bytes of all answers.
	received atomic.Int64
}

// outcome is what became of one item.
type outcome struct {
	items   workflow.Items
	failure *failure
}

func (c Config) execute(ctx context.Context, call *node.Call) (*node.Result, error) {
	x := &execution{Config: c, call: call, read: (*parameters).readRequest, output: (*response).items}
	if call.Node.TypeVersion < 3 {
		x.read = (*parameters).readOldRequest
	}
	return x.execute(ctx)
}

func (x *execution) execute(ctx context.Context) (*node.Result, error) {
	call := x.call
	x.continues = continues(call)
	if len(call.Inputs) > 0 {
		x.input = call.Inputs[0]
	}
	batch, interval, err := x.batching(ctx)
	if err != nil {
		return nil, asFailure(err, 0, nil).node
	}
	output := workflow.Items{}
	for start := 0; start < len(x.input); start += batch {
		if start > 0 && !wait(ctx, interval) {
			return nil, ctx.Err()
		}
		outcomes, err := x.batch(ctx, start, min(start+batch, len(x.input)))
		if err != nil {
			return nil, err
		}
		for i, o := range outcomes {
			switch {
			case o.failure == nil:
				output = append(output, o.items...)
			case x.continues:
				output = append(output, errorItem(o.failure, start+i))
			default:
				return nil, o.failure.node
			}
		}
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{output}}}, nil
}

// continues reports whether failures stay with their items. A tool's failure
// that goes to an error output would never reach the model: there it fails
// the node, and the engine tells the model.
func continues(call *node.Call) bool {
	switch call.Node.OnError {
	case workflow.OnErrorContinue:
		return true
	case workflow.OnErrorOutput:
		return call.ToolArguments == nil && call.ToolCallID == ""
	}
	return call.Node.ContinueOnFail
}

func errorItem(f *failure, item int) workflow.Item {
	var o jsonobject.Object
	o.Set("error", f.item)
	return workflow.Item{JSON: o.JSON(), PairedItem: workflow.Paired(item)}
}

// batching reads how many requests go out together, and the pause after them.
func (x *execution) batching(ctx context.Context) (size int, interval time.Duration, err error) {
	p := &parameters{ctx: ctx, call: x.call}
	if !p.value("options.batching.batch").Exists() {
		return maxInFlight, 0, nil
	}
	size = int(p.number("options.batching.batch.batchSize", 50))
	interval = time.Duration(p.number("options.batching.batch.batchInterval", 1000)) * time.Millisecond
	if size <= 0 { // -1 is "all at once" in n8n
		size = maxInFlight
		interval = 0
	}
	return size, interval, p.err
}

// batch evaluates the requests of some items, then sends them at once. Nothing
// is sent when one of them cannot be made and the node would fail. Its error
// ends the run: ctx ended, or the failure of the node.
func (x *execution) batch(ctx context.Context, start, end int) ([]outcome, error) {
	outcomes := make([]outcome, end-start)
	requests := make([]*request, end-start)
	for i := range requests {
		r, err := x.prepare(ctx, start+i)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			requests[i] = r
			continue
		}
		outcomes[i].failure = asFailure(err, start+i, x.auth)
		if !x.continues {
			return nil, outcomes[i].failure.node
		}
	}
	slots := make(chan struct{}, maxInFlight)
	var group sync.WaitGroup
	for i, r := range requests {
		if r == nil {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			items, err := x.run(ctx, r, start+i)
			if err != nil {
				outcomes[i].failure = asFailure(err, start+i, &r.secrets)
				return
			}
			outcomes[i].items = items
		})
	}
	group.Wait()
	return outcomes, ctx.Err()
}

// prepare evaluates the request of an item.
func (x *execution) prepare(ctx context.Context, item int) (*request, error) {
	p := &parameters{ctx: ctx, call: x.call, item: item}
	r := x.read(p)
	if p.err != nil {
		return nil, p.err
	}
	if x.auth == nil {
		auth, err := p.authenticate()
		if err != nil {
			return nil, err
		}
		x.auth = auth
	}
	r.apply(x.auth)
	return r, nil
}

// run sends the request of an item, or its pages, and reads the answer.
func (x *execution) run(ctx context.Context, r *request, item int) (workflow.Items, error) {
	pages, err := x.pagination(ctx, item)
	if err != nil {
		return nil, err
	}
	if pages != nil {
		return pages.run(ctx, r)
	}
	resp, err := x.send(ctx, r, x.key(item, 0))
	if err != nil {
		return nil, err
	}
	return x.output(resp, r.options, x.input[item], item)
}

// key is the idempotency key of one request: the run's own when it makes only
// one, else one for each, since a service that has seen a key before answers
// with its earlier answer.
func (x *execution) key(item, page int) string {
	key := x.call.IdempotencyKey
	if key == "" {
		return ""
	}
	if len(x.input) > 1 {
		key += fmt.Sprintf("-%d", item)
	}
	if page > 0 {
		key += fmt.Sprintf("-p%d", page)
	}
	return key
}

// wait reports whether d passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// toolDescription is what a tool says of itself when the user wrote nothing.
const toolDescription = "Makes an HTTP request and returns the response data"
