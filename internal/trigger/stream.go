package trigger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// How long the lease of a stream lasts, how often it is kept, and the pauses between two
// connections: the server's wish or streamPause, twice as long after each failure.
const (
	streamLease    = 15 * time.Second
	streamKeep     = 4 * time.Second
	streamPause    = 3 * time.Second
	maxStreamPause = time.Minute
)

// stream is an SSE Trigger: a stream of server-sent events, each of which begins an execution. One
// process at a time reads it, which has its lease. The id of the last event that began
// one is kept with the lease: whoever reads on asks for those behind it.
type stream struct {
	*source
	node *workflow.Node
	url  string
}

// key tells streams apart; one that is changed is another.
func (s *stream) key() string { return digest(s.id, s.hash, s.node.Name, s.url) }

// lease names the stream also after its workflow was changed: its events go on.
func (s *stream) lease() string { return "stream-" + digest(s.id, s.node.Name, s.url) }

// streamsOf reads the SSE triggers of a workflow.
func streamsOf(ctx context.Context, e Evaluator, s *source) ([]*stream, error) {
	var all []*stream
	for _, n := range s.workflow.Nodes {
		if n.Disabled || n.Type != typeStream {
			continue
		}
		p := parametersOf(ctx, e, s.workflow, n, nil)
		address := p.text("url", "")
		if p.err != nil {
			return nil, p.err
		}
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("node %q: %q is no URL of a stream: it begins with https:// or http://", n.Name, address)
		}
		all = append(all, &stream{source: s, node: n, url: address})
	}
	return all, nil
}

// streams reads those that are set.
type streams struct {
	host   *Host
	holder string

	mu      sync.Mutex
	parent  context.Context //nolint:containedctx // of all readers, from Start to Stop
	running map[string]context.CancelFunc
	wg      sync.WaitGroup
}

func (c *streams) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parent, c.running = ctx, map[string]context.CancelFunc{}
}

// set begins to read streams that are new, and ends those that are not among all.
func (c *streams) set(all []*stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parent == nil || c.parent.Err() != nil {
		return
	}
	wanted := map[string]bool{}
	for _, s := range all {
		key := s.key()
		wanted[key] = true
		if c.running[key] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(c.parent)
		c.running[key] = cancel
		c.wg.Go(func() { c.read(ctx, s) })
	}
	for key, cancel := range c.running {
		if !wanted[key] {
			cancel()
			delete(c.running, key)
		}
	}
}

// read reads a stream whenever its lease is free, until ctx ends.
func (c *streams) read(ctx context.Context, s *stream) {
	log := c.host.log.With(zap.String("workflow_id", s.id), zap.String("node", s.node.Name))
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := c.host.Store.Release(ctx, s.lease(), c.holder); err != nil {
			log.Debug("lease of a stream was not given back", zap.Error(err))
		}
	}()
	for failures := 0; ctx.Err() == nil; {
		lease, err := c.host.Store.Lease(ctx, s.lease(), c.holder, streamLease, nil)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				log.Warn("lease of a stream cannot be taken; it is tried again", zap.Error(err))
			}
			sleep(ctx, streamPause)
			continue
		case !lease.Held:
			sleep(ctx, min(lease.Free+10*time.Millisecond, streamKeep))
			continue
		}
		r := &streamReader{streams: c, stream: s, log: log, last: lease.Note, pause: streamPause}
		err = r.follow(ctx)
		if failures++; r.events > 0 {
			failures = 0
		}
		if ctx.Err() != nil {
			return
		}
		pause := min(r.pause<<min(failures, 6), maxStreamPause)
		log.Info("stream has ended; it is read again", zap.Duration("pause", pause), zap.NamedError("reason", err))
		c.pause(ctx, s, pause)
	}
}

// pause waits, and keeps the lease meanwhile: another process would not fare better.
func (c *streams) pause(ctx context.Context, s *stream, length time.Duration) {
	for ; length > 0 && ctx.Err() == nil; length -= streamKeep {
		sleep(ctx, min(length, streamKeep))
		if _, err := c.host.Store.Lease(ctx, s.lease(), c.holder, streamLease, nil); err != nil {
			return // the next attempt tells
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// streamReader is one connection.
type streamReader struct {
	*streams
	stream *stream
	log    *zap.Logger
	last   string // id of the last event
	pause  time.Duration
	events int
}

var errLeaseLost = errors.New("another process reads the stream")

// follow reads the stream until it ends or the lease is lost.
func (r *streamReader) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var kept sync.WaitGroup
	defer kept.Wait()
	defer cancel(nil)
	kept.Go(func() { r.keep(ctx, cancel) })
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.stream.url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Cache-Control", "no-cache")
	if r.last != "" {
		request.Header.Set("Last-Event-ID", r.last)
	}
	answer, err := r.host.HTTP.Do(request)
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	r.log.Debug("stream is read", zap.String("after", r.last))
	err = readEvents(answer.Body, event{id: r.last}, func(e event) error { return r.take(ctx, e) }, func(pause time.Duration) { r.pause = min(pause, maxStreamPause) })
	return errors.Join(context.Cause(ctx), err)
}

// keep keeps the lease, and ends the reading when it is lost, or not known to be held.
func (r *streamReader) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	for until := time.Now().Add(streamLease); ; {
		sleep(ctx, streamKeep)
		if ctx.Err() != nil {
			return
		}
		asked := time.Now()
		call, done := context.WithTimeout(ctx, streamKeep)
		lease, err := r.host.Store.Lease(call, r.stream.lease(), r.holder, streamLease, nil)
		done()
		switch {
		case err == nil && lease.Held:
			until = asked.Add(streamLease)
		case err == nil || time.Now().Add(streamKeep).After(until):
			cancel(errLeaseLost)
			return
		}
	}
}

// take begins the execution of an event, and notes that. An event that comes again, as the note was
// lost, begins the same one.
func (r *streamReader) take(ctx context.Context, e event) error {
	if e.name == "" || e.name == "message" {
		id := engine.ExecutionID(uuid.NewString())
		if e.id != "" {
			id = engine.ExecutionID("event-" + digest(r.stream.id, r.stream.node.Name, e.id, e.data))
		}
		if err := r.begin(ctx, id, e); err != nil {
			return err
		}
	}
	r.events++
	if e.id == r.last {
		return nil
	}
	lease, err := r.host.Store.Lease(ctx, r.stream.lease(), r.holder, streamLease, &e.id)
	switch {
	case err != nil:
		return err
	case !lease.Held:
		return errLeaseLost
	}
	r.last = e.id
	return nil
}

func (r *streamReader) begin(ctx context.Context, id engine.ExecutionID, e event) error {
	item := workflow.Item{JSON: []byte(e.data)}
	if data := gjson.Parse(e.data); !gjson.Valid(e.data) || !data.IsObject() {
		value := toJSON(e.data)
		if gjson.Valid(e.data) {
			value = []byte(e.data)
		}
		item.JSON = toJSON(map[string]any{"data": value})
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, streamPause) {
		_, err := r.host.Backend.Submit(ctx, &queue.Submission{
			ID: id, WorkflowID: r.stream.id, WorkflowHash: r.stream.hash, Start: r.stream.node.Name, Mode: "trigger", Input: workflow.Items{item},
		})
		var problem *queue.Problem
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &problem) && problem.Code != queue.CodeUnavailable && problem.Code != queue.CodeFull && problem.Code != queue.CodeOverloaded:
			// It would be refused again: this event is lost, the next may not be.
			r.log.Error("execution of an event is refused", zap.Error(err))
			return nil
		}
		r.log.Warn("execution of an event was not submitted; it is tried again", zap.Error(err))
		sleep(ctx, pause)
	}
}
