package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// client is somebody who submits executions and does what they wait for. Clients are
// not killed; their messages get lost like all others.
type client struct {
	p   *process
	rng *rand.Rand
}

// decision is what a decider was told.
type decision struct {
	token, by string
	approved  bool
	won       bool
	// sure: it was told that it had won or lost at its first attempt.
	sure bool
}

func serving(p *process) bool { return p.api != nil }

// api calls an endpoint of the micro service.
func (c client) api(endpoint, key string, request any, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		panic(err)
	}
	w := c.p.w
	given, err := ask(c.p.ctx, c.p, endpoint, key, false, one(func() *process { return w.any(serving) }), func(t *process, reply func([]byte, error)) {
		t.mu.Lock()
		api := t.api
		t.mu.Unlock()
		if api == nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
		defer cancel()
		var value any
		var err error
		switch endpoint {
		case queue.EndpointSubmit:
			var sub queue.Submission
			if err := json.Unmarshal(data, &sub); err != nil {
				panic(err)
			}
			api.Submit(t.ctx, &sub, func(id engine.ExecutionID, problem *queue.Problem) {
				if problem != nil {
					reply(nil, problem)
					return
				}
				encoded, _ := json.Marshal(queue.SubmitAnswer{ID: id})
				reply(encoded, nil)
			})
			return
		case queue.EndpointGet:
			var r queue.GetRequest
			_ = json.Unmarshal(data, &r)
			value, err = api.Get(ctx, &r)
		case queue.EndpointCancel:
			var r queue.CancelRequest
			_ = json.Unmarshal(data, &r)
			err = api.Cancel(ctx, &r)
		default:
			value, err = api.More[endpoint](ctx, data)
		}
		if err != nil {
			reply(nil, err)
			return
		}
		encoded, err := json.Marshal(value)
		reply(encoded, err)
	})
	if err == nil && answer != nil {
		err = json.Unmarshal(given, answer)
	}
	return err
}

// again reports whether a call has to be repeated: nobody knows what became of it.
func (c client) again(err error) bool {
	if err == nil || c.p.dead.Load() {
		return false
	}
	var problem *queue.Problem
	if !errors.As(err, &problem) {
		return true
	}
	return problem.Code == queue.CodeUnavailable || problem.Code == queue.CodeFull || problem.Code == queue.CodeOverloaded
}

func (c client) code(err error) string {
	var problem *queue.Problem
	if errors.As(err, &problem) {
		return problem.Code
	}
	return ""
}

func (c client) pause(most time.Duration) {
	_ = sleep(c.p.ctx, time.Millisecond+time.Duration(c.rng.Int64N(int64(most))))
}

// until repeats a call until its outcome is known, and returns how often it was made.
func (c client) until(call func() error) (tries int, err error) {
	for {
		tries++
		if err = call(); !c.again(err) {
			return tries, err
		}
		c.pause(2 * time.Second)
	}
}

// store puts the workflows that others call.
func (c client) store(documents []*document) {
	for _, d := range documents {
		_, err := c.until(func() error {
			return c.api(queue.EndpointWorkflowPut, d.id, queue.WorkflowPutRequest{ID: d.id, Document: d.json}, nil)
		})
		if err != nil && !c.p.dead.Load() {
			c.broken("workflow %s cannot be stored: %v", d.id, err)
		}
	}
}

// broken reports a failure from a client's goroutine.
func (c client) broken(format string, args ...any) {
	o := &operation{p: c.p, kind: "broken", reliable: true}
	o.exec = func() { c.p.w.fail(format, args...) }
	_ = o.call(c.p.ctx)
}

// submit starts an execution, by request or durably.
func (c client) submit(d *document) {
	sub := queue.Submission{Version: queue.Version, ID: engine.ExecutionID(d.id), Workflow: d.json, Input: item("S")}
	if d.partial != "" {
		sub.Destination = &engine.Destination{Node: d.partial}
	}
	c.send(sub)
}

func (c client) send(sub queue.Submission) {
	id := string(sub.ID)
	durable := c.rng.IntN(3) == 0
	_, err := c.until(func() error {
		if !durable {
			return c.api(queue.EndpointSubmit, id, sub, nil)
		}
		data, err := json.Marshal(sub)
		if err != nil {
			panic(err)
		}
		w := c.p.w
		o := &operation{p: c.p, kind: "submit durable", key: id, lost: errNATS, repeats: true}
		o.exec = func() { _ = w.submissions.Publish(w.now(), "coordinators", "submission "+id, data) } // one that is there is this one
		return o.call(c.p.ctx)
	})
	if err != nil && !c.p.dead.Load() {
		c.broken("execution %s was refused: %v", id, err)
	}
}

// run submits an execution and does what it waits for, until it is over.
func (c client) run(d *document) {
	c.pause(c.p.w.profile.span / 2)
	c.submit(d)
	if d.outside {
		c.pause(15 * time.Second)
		_, err := c.until(func() error {
			return c.api(queue.EndpointCancel, d.id, queue.CancelRequest{ID: engine.ExecutionID(d.id)}, nil)
		})
		// A durable submission may not be there yet.
		if code := c.code(err); err != nil && code != queue.CodeConflict && code != queue.CodeNotFound && !c.p.dead.Load() {
			c.broken("cancel of %s: %v", d.id, err)
		}
	}
	c.await(d, d.id)
	c.follow(d)
}

// await does what an execution waits for, until it is over.
func (c client) await(d *document, id string) {
	asked := map[string]bool{}
	for d.waits && !c.p.dead.Load() {
		c.pause(3 * time.Second)
		var x queue.Execution
		if err := c.api(queue.EndpointGet, id, queue.GetRequest{ID: engine.ExecutionID(id)}, &x); err != nil {
			continue
		}
		if x.Status.Finished() {
			return
		}
		for _, waiting := range x.Waiting {
			switch waiting.Kind {
			case engine.WaitWebhook:
				_, _ = c.until(func() error {
					return c.api(queue.EndpointResume, id, queue.ResumeRequest{
						Execution: engine.ExecutionID(id), Data: json.RawMessage(fmt.Sprintf("%q", "call of "+waiting.Token)),
					}, nil)
				})
			case engine.WaitApproval:
				if !asked[waiting.Token] {
					asked[waiting.Token] = true
					c.decide(waiting.Token)
				}
			}
		}
	}
}

// follow runs an execution again, once it is over.
func (c client) follow(d *document) {
	if d.retried == "" && !d.rerun {
		return
	}
	x := c.ended(d.id)
	if x == nil {
		return
	}
	if d.rerun {
		var data struct {
			ResultData struct {
				RunData map[string][]*engine.Record `json:"runData"`
			} `json:"resultData"`
		}
		if err := json.Unmarshal(x.Data, &data); err != nil {
			c.broken("run data of %s: %v", d.id, err)
		}
		if x.Status == engine.StatusSuccess {
			c.send(queue.Submission{
				Version: queue.Version, ID: engine.ExecutionID(d.id + "-p"), Workflow: d.json,
				Destination: &engine.Destination{Node: d.partial}, RunData: data.ResultData.RunData,
			})
			c.await(d, d.id+"-p")
		}
		return
	}
	_, err := c.until(func() error {
		return c.api(queue.EndpointRetry, d.id, queue.RetryRequest{
			ID: engine.ExecutionID(d.id), NewID: engine.ExecutionID(d.id + "-r"), FromStart: d.retried == "start",
		}, nil)
	})
	switch {
	case c.p.dead.Load():
	case err != nil && (c.code(err) != queue.CodeConflict || d.retried == "start" || x.Status == engine.StatusError):
		c.broken("retry of %s (%s): %v", d.id, x.Status, err)
	case err == nil:
		c.await(d, d.id+"-r")
	}
}

// ended waits for the end of an execution.
func (c client) ended(id string) *queue.Execution {
	for !c.p.dead.Load() {
		c.pause(4 * time.Second)
		var x queue.Execution
		if err := c.api(queue.EndpointGet, id, queue.GetRequest{ID: engine.ExecutionID(id), Data: true}, &x); err == nil && x.Status.Finished() {
			return &x
		}
	}
	return nil
}

// decide has two people decide a question at about the same time.
func (c client) decide(token string) {
	w := c.p.w
	c.pause(10 * time.Second)
	for i, by := range []string{"anna", "bert"} {
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), uint64(i))) //nolint:gosec // a simulation is to be repeatable
		w.mu.Lock()
		w.clients++
		w.mu.Unlock()
		go func() {
			defer w.clientDone()
			c := client{c.p, rng}
			c.pause(200 * time.Millisecond)
			approved := c.rng.IntN(2) == 0
			tries, err := c.until(func() error {
				return c.api(queue.EndpointDecide, token+" "+by, queue.DecideRequest{
					ID: token, Decision: engine.Decision{Approved: approved, By: by},
				}, nil)
			})
			if c.p.dead.Load() {
				return
			}
			switch c.code(err) {
			case "", queue.CodeConflict, queue.CodeGone:
			default:
				c.broken("decision of %s: %v", token, err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.decisions = append(w.decisions, decision{token: token, by: by, approved: approved, won: err == nil, sure: tries == 1})
		}()
	}
}

func (w *world) clientDone() {
	w.mu.Lock()
	w.clients--
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
