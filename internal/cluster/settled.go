package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// Look reads executions from Redis; nil for one that is not there.
func (c *Cluster) Look(ids ...string) ([]*engine.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	wanted := make([]engine.ExecutionID, len(ids))
	for i, id := range ids {
		wanted[i] = engine.ExecutionID(id)
	}
	stored, err := c.Store.Load(ctx, wanted)
	if err != nil {
		return nil, err
	}
	states := make([]*engine.State, len(ids))
	for i, s := range stored {
		if s == nil {
			continue
		}
		if states[i], err = engine.Restore(s.Tables); err != nil {
			return nil, fmt.Errorf("restore %s: %w", ids[i], err)
		}
	}
	return states, nil
}

// Await waits until a condition holds, which says what is missing ("" is nothing),
// and returns how long that took. It fails the test, with the processes' logs.
func (c *Cluster) Await(within time.Duration, missing func() string) time.Duration {
	c.t.Helper()
	start := time.Now()
	for {
		what := missing()
		if what == "" {
			return time.Since(start)
		}
		if time.Since(start) > within {
			c.Dump()
			c.t.Fatalf("after %s: %s", within, what)
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the condition
	}
}

// AwaitStates waits until a condition holds for each of the executions.
func (c *Cluster) AwaitStates(ids []string, within time.Duration, what string, is func(*engine.State) bool) time.Duration {
	c.t.Helper()
	return c.Await(within, func() string {
		states, err := c.Look(ids...)
		if err != nil {
			return err.Error()
		}
		left, example := 0, ""
		for i, s := range states {
			if s == nil || !is(s) {
				left++
				example = ids[i] + " " + describe(s)
			}
		}
		if left == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %d executions are not %s: %s", left, len(ids), what, example)
	})
}

// AwaitFinished waits until executions are over.
func (c *Cluster) AwaitFinished(ids []string, within time.Duration) time.Duration {
	c.t.Helper()
	return c.AwaitStates(ids, within, "over", func(s *engine.State) bool { return s.Meta.Status.Finished() })
}

// AwaitDone waits until a node's only run is stored as successful.
func (c *Cluster) AwaitDone(id, node string, within time.Duration) {
	c.t.Helper()
	c.AwaitStates([]string{id}, within, "done with "+node, func(s *engine.State) bool {
		return s.Runs(node) == 1 && s.Run[node][0] != nil && s.Run[node][0].Status == engine.StatusSuccess
	})
}

func describe(s *engine.State) string {
	if s == nil {
		return "(not stored)"
	}
	jobs := make([]string, 0, len(s.Jobs))
	for _, j := range s.Jobs {
		jobs = append(jobs, fmt.Sprintf("%s %s attempt %d given again %d", j.ID, j.Entry.Node, j.Attempt, j.GivenAgain))
	}
	return fmt.Sprintf("%s, jobs %q", s.Meta.Status, jobs)
}

// Settled waits until executions of the cluster's workflow have succeeded and
// checks everything that must hold after any fault: the right answer, one record
// per node, effects once, or repeated under the same key where that is allowed,
// and what Idle checks. All within a time; it returns how long the executions took.
func (c *Cluster) Settled(ids []string, within time.Duration, repeats Repeats) time.Duration {
	c.t.Helper()
	start := time.Now()
	took := c.AwaitFinished(ids, within)
	states, err := c.Look(ids...)
	c.must(err)
	for _, s := range states {
		c.check(s)
	}
	for _, problem := range c.Ledger.problems(ids, c.Tools, repeats) {
		c.t.Error(problem)
	}
	c.Idle(max(within-time.Since(start), 10*time.Second))
	if c.t.Failed() {
		c.Dump()
		c.t.FailNow()
	}
	return took
}

// check checks a successful execution of the workflow.
func (c *Cluster) check(s *engine.State) {
	c.t.Helper()
	if s.Meta.Status != engine.StatusSuccess {
		c.t.Errorf("%s: status %s: %+v", s.Meta.ID, s.Meta.Status, s.Meta.Error)
		return
	}
	for _, name := range append([]string{"Start", "AI Agent"}, c.Tools...) {
		if s.Runs(name) != 1 || s.Run[name][0].Status != engine.StatusSuccess {
			c.t.Errorf("%s: %s has %d runs, want one that succeeded", s.Meta.ID, name, s.Runs(name))
			return
		}
	}
	if s.Runs("Model") != 2 {
		c.t.Errorf("%s: %d runs of the model, want 2", s.Meta.ID, s.Runs("Model"))
	}
	if got, want := Output(s, "AI Agent"), AnswerOf(c.Tools); got != want {
		c.t.Errorf("%s: answer is %q, want %q", s.Meta.ID, got, want)
	}
}

// Output is the field "output" of the first item of a node's first run: an Agent's answer.
func Output(s *engine.State, node string) string {
	if s.Runs(node) == 0 || s.Run[node][0] == nil {
		return ""
	}
	main := s.Run[node][0].Data["main"]
	if len(main) == 0 || len(main[0]) == 0 {
		return ""
	}
	var out struct{ Output string }
	if json.Unmarshal(main[0][0].JSON, &out) != nil {
		return ""
	}
	return out.Output
}

// Idle waits until nothing is in flight anywhere and checks what must hold then: no
// job or submission on a stream or with a consumer, no timer or sweep, no open job in Redis, an
// expiry of all keys of finished executions and none of others, and all
// processes that the test has not ended itself are alive and ready.
func (c *Cluster) Idle(within time.Duration) {
	c.t.Helper()
	nc, err := nats.Connect(c.NATS.URL)
	c.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	c.must(err)
	c.Await(within, func() string {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for _, name := range []string{queue.StreamJobs, queue.StreamSubmit} {
			if left := busy(ctx, js, name); left != "" {
				return left
			}
		}
		timer, sweep, err := c.Store.NextDue(ctx)
		switch {
		case err != nil:
			return err.Error()
		case timer != 0 || sweep != 0:
			return fmt.Sprintf("timers (%d) or sweeps (%d) are left", timer, sweep)
		}
		for _, p := range c.Processes() {
			if p.wanted && !p.Running() {
				return p.Name + " has ended by itself"
			}
			if p.Running() {
				if ready, why := p.Ready(); !ready {
					return fmt.Sprintf("%s is not ready: %s", p.Name, why)
				}
			}
		}
		return ""
	})
	for _, problem := range c.KeyProblems() {
		c.t.Error(problem)
	}
}

// busy says what a stream and its consumers still hold.
func busy(ctx context.Context, js jetstream.JetStream, name string) string {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return fmt.Sprintf("stream %s: %v", name, err)
	}
	if n := stream.CachedInfo().State.Msgs; n > 0 {
		return fmt.Sprintf("%d messages are left on %s", n, name)
	}
	consumers := stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		if info.NumAckPending > 0 || info.NumPending > 0 {
			return fmt.Sprintf("consumer %s of %s has %d pending and %d without ack", info.Name, name, info.NumPending, info.NumAckPending)
		}
	}
	if err := consumers.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// KeyProblems lists keys of unfinished executions that expire, keys of finished ones
// that do not, and open jobs of finished ones.
func (c *Cluster) KeyProblems() (found []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	options, err := redis.ParseURL(c.redisURL)
	c.must(err)
	rdb := redis.NewClient(options)
	defer func() { _ = rdb.Close() }()
	executions := 0
	for scan := rdb.Scan(ctx, 0, "reprise:{s*}:fault-*:meta", 1000).Iterator(); scan.Next(ctx); {
		meta := scan.Val()
		executions++
		base := strings.TrimSuffix(meta, "meta")
		for _, table := range []string{"meta", "stack", "run", "open"} {
			key := base + table
			// One moment, and possible without memory, unlike a transaction.
			reply, err := rdb.Eval(ctx, `return {redis.call('HGET', KEYS[1], '~s'), redis.call('PTTL', KEYS[2]), redis.call('EXISTS', KEYS[2])}`,
				[]string{meta, key}).Slice()
			if err != nil {
				found = append(found, err.Error())
				continue
			}
			status, _ := reply[0].(string)
			ttl, exists := reply[1].(int64), reply[2].(int64)
			if exists == 0 {
				continue
			}
			finished := engine.Status(status).Finished()
			switch {
			case finished && ttl <= 0:
				found = append(found, key+" of a finished execution has no expiry")
			case !finished && ttl > 0:
				found = append(found, key+" of an unfinished execution expires")
			case finished && table == "open":
				found = append(found, key+" is left of a finished execution")
			}
		}
	}
	if executions == 0 {
		found = append(found, "no execution is stored at all")
	}
	return found
}
