package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/internal/simulation/memqueue"
	"github.com/reprise-engine/reprise/internal/worker"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
)

// transportOf is NATS as one process reaches it. Timeouts are those of pkg/queue.
type transportOf struct{ p *process }

var (
	_ coordinator.Transport = transportOf{}
	_ worker.Transport      = transportOf{}
	_ worker.Source         = sourceOf{}
)

const (
	requestTimeout = 10 * time.Second
	directTimeout  = 3 * time.Second
	anyTimeout     = 2 * time.Second
	holderWait     = 300 * time.Millisecond
	publishTimeout = 10 * time.Second
	submitWait     = 6 * time.Second // ack wait of durable submissions
)

type memoryLoader func(ctx context.Context, session string, n int) ([]json.RawMessage, error)

func jobSubject(pool string, id engine.JobID) string {
	if pool == "" {
		pool = queue.DefaultPool
	}
	return "reprise.job." + pool + "." + string(id)
}

// serve sets what a process serves; stop takes it back.
func (t transportOf) serve(set func(p *process, on bool)) (stop func(), err error) {
	change := func(on bool) {
		t.p.mu.Lock()
		defer t.p.mu.Unlock()
		set(t.p, on)
	}
	change(true)
	return func() { change(false) }, nil
}

func (t transportOf) ServeResults(_ string, handler func(r *queue.Result, size int, reply func(queue.Reply))) (func(), error) {
	return t.serve(func(p *process, on bool) {
		if p.results = nil; on {
			p.results = handler
		}
	})
}

func (t transportOf) ServeRedelivery(handler func(q *queue.Redelivery, reply func(queue.Reply))) (func(), error) {
	return t.serve(func(p *process, on bool) {
		if p.redelivery = nil; on {
			p.redelivery = handler
		}
	})
}

func (t transportOf) ServeMemory(load func(ctx context.Context, session string, n int) ([]json.RawMessage, error)) (func(), error) {
	return t.serve(func(p *process, on bool) {
		if p.memory = nil; on {
			p.memory = load
		}
	})
}

func (t transportOf) ServeSubmissions(handler func(coordinator.DurableSubmission)) (func(), error) {
	return t.serve(func(p *process, on bool) {
		if p.submissions = nil; on {
			p.submissions = handler
		}
	})
}

func (t transportOf) ServeAPI(api queue.API) (func(), error) {
	return t.serve(func(p *process, on bool) {
		if p.api = nil; on {
			p.api = &api
		}
	})
}

var errNATS = fmt.Errorf("simulated: %w", queue.ErrUnavailable)

// PublishJobs sends each job as a message of its own.
func (t transportOf) PublishJobs(ctx context.Context, jobs []*queue.Job) (wait func() []error) {
	w := t.p.w
	operations := make([]*operation, len(jobs))
	outcomes := make([]error, len(jobs))
	for i, job := range jobs {
		data, err := json.Marshal(job)
		if err != nil {
			panic(err) // the product's jobs always encode
		}
		pool, subject := job.Pool, jobSubject(job.Pool, job.ID)
		if pool == "" {
			pool = queue.DefaultPool
		}
		o := &operation{p: t.p, kind: "publish", key: string(job.ID), lost: errNATS}
		id, first, seen := job.ID, false, false
		o.sent = func() { first = w.history.attempt(t.p, id) }
		o.exec = func() {
			err := w.jobs.Publish(w.now(), pool, subject, data)
			if err == nil {
				w.history.first[id] = first && !seen
			}
			seen = true
			w.trace("  ", outcome(err))
			if !o.ended {
				outcomes[i] = err
			}
		}
		operations[i] = o
		o.start()
	}
	deadline := time.Now().Add(publishTimeout)
	return func() []error {
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		errs := make([]error, len(jobs))
		for i, o := range operations {
			if errs[i] = o.wait(ctx); errs[i] == nil {
				errs[i] = outcomes[i]
			} else if !errors.Is(errs[i], queue.ErrUnavailable) {
				errs[i] = fmt.Errorf("%w: %w", queue.ErrUnavailable, errs[i])
			}
		}
		return errs
	}
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// PublishControl tells all workers, each by a message of its own.
func (t transportOf) PublishControl(c queue.Control) error {
	w := t.p.w
	key := ""
	for _, id := range c.Drop {
		key += " " + string(id)
	}
	o := &operation{p: t.p, kind: "control", key: key}
	o.exec = func() {
		for _, p := range w.alive(func(p *process) bool { return p.holds }) {
			if w.fault(w.profile.lost) {
				continue
			}
			w.after(w.latency(), &event{name: "drop" + key + " at " + p.name, owner: p, run: func() { p.drop(slices.Clone(c.Drop)) }})
		}
	}
	o.tell()
	return nil
}

func (t transportOf) Withdraw(ctx context.Context, pool string, jobs ...engine.JobID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, id := range jobs {
		o := &operation{p: t.p, kind: "withdraw", key: string(id), lost: errNATS, repeats: true}
		o.exec = func() { t.p.w.jobs.Purge(jobSubject(pool, id)) }
		if err := o.call(ctx); err != nil {
			return err
		}
	}
	return nil
}

// PublishLive: nobody watches.
func (t transportOf) PublishLive(engine.ExecutionID, []engine.Live) error { return nil }

func (t transportOf) PublishDead(ctx context.Context, letter *queue.DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o := &operation{p: t.p, kind: "dead letter", key: string(letter.Job), lost: errNATS, repeats: true}
	o.exec = func() { t.p.w.history.dead(*letter) }
	return o.call(ctx)
}

// signal sends a word about a delivery; it does not wait, and it may get lost.
func (t transportOf) signal(word, ack string, do func(w *world)) error {
	if t.p.dead.Load() {
		return errKilled
	}
	o := &operation{p: t.p, kind: word, key: ack, repeats: true}
	o.exec = func() { do(t.p.w) }
	o.tell()
	return nil
}

func (t transportOf) Ack(ack string) error {
	return t.signal("ack", ack, func(w *world) { w.jobs.Ack(ack) })
}

func (t transportOf) Healthy() error { return nil }

func (t transportOf) ConnectedAt() (time.Time, bool) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.p.connected, t.p.again
}

// ask sends a request to those whom to finds when it reaches the server, and waits for the
// first answer. hand gives it to such a process, in a goroutine of its own.
func ask[T any](ctx context.Context, p *process, kind, key string, repeats bool, to func() []*process, hand func(t *process, reply func(T, error))) (T, error) {
	w := p.w
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
		defer cancel()
	}
	var given T
	o := &operation{p: p, kind: kind, key: key, repeats: repeats, answers: true}
	if strings.HasPrefix(kind, "result") {
		o.heard = func(value any) {
			if r, ok := value.(queue.Reply); ok && r.Verdict == queue.VerdictOK {
				w.history.confirmed(engine.JobID(key))
			}
		}
	}
	o.exec = func() {
		asked := to()
		if len(asked) == 0 {
			w.after(w.latency(), &event{name: "nobody answers " + o.name(), owner: p, run: func() { o.finish(queue.ErrNoCoordinator) }})
			return
		}
		for _, t := range asked {
			w.after(w.latency(), &event{name: t.name + " gets " + kind + " " + key + " of " + p.name, owner: t, run: func() {
				reply := func(value T, err error) {
					back := &operation{p: t, kind: "reply", key: kind + " " + key + " of " + p.name}
					back.exec = func() {
						w.after(w.latency(), &event{name: "answer " + o.name(), owner: p, run: func() {
							if !o.ended {
								given = value
								if o.heard != nil {
									o.heard(value)
								}
							}
							o.finish(err)
						}})
					}
					back.tell()
				}
				go hand(t, sync1(reply))
			}})
		}
	}
	err := o.call(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	case err == nil:
		return given, nil
	}
	var none T
	return none, err
}

// sync1 makes the first answer count.
func sync1[T any](reply func(T, error)) func(T, error) {
	var once sync.Once
	return func(value T, err error) { once.Do(func() { reply(value, err) }) }
}

func (t transportOf) SendResult(ctx context.Context, coordinator string, r *queue.Result) (queue.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // the product's results always encode
	}
	w := t.p.w
	hand := func(p *process, reply func(queue.Reply, error)) {
		got := &queue.Result{}
		if err := json.Unmarshal(data, got); err != nil {
			panic(err)
		}
		p.mu.Lock()
		handler := p.results
		p.mu.Unlock()
		if handler != nil {
			handler(got, len(data), func(r queue.Reply) { reply(r, nil) })
		}
	}
	serves := func(p *process) bool { return p.results != nil }
	direct := one(func() *process {
		w.history.sent(r)
		for _, p := range w.alive(serves) {
			if p.name == coordinator {
				return p
			}
		}
		return nil
	})
	kind := "result"
	if r.HandedBack {
		kind = "hand back"
	}
	first, stop := context.WithTimeout(ctx, directTimeout)
	reply, err := ask(first, t.p, kind, string(r.Job), true, direct, hand)
	stop()
	if err == nil || ctx.Err() != nil || (!errors.Is(err, queue.ErrNoCoordinator) && !errors.Is(err, queue.ErrUnavailable)) {
		return reply, err
	}
	second, stop := context.WithTimeout(ctx, anyTimeout)
	reply, err = ask(second, t.p, kind+" to any", string(r.Job), true, one(func() *process { w.history.sent(r); return w.any(serves) }), hand)
	stop()
	if !errors.Is(err, queue.ErrUnavailable) || ctx.Err() != nil {
		return reply, err
	}
	return ask(ctx, t.p, kind+" to all", string(r.Job), true, func() []*process { w.history.sent(r); return w.alive(serves) }, hand)
}

// one makes a list of the process that is found, if one is.
func one(find func() *process) func() []*process {
	return func() []*process {
		if p := find(); p != nil {
			return []*process{p}
		}
		return nil
	}
}

// askAny asks one after the other as long as none answers within anyTimeout. reached is
// told each time that the question is at the server.
func askAny[T any](ctx context.Context, p *process, kind, key string, reached func(), serves func(*process) bool, hand func(t *process, reply func(T, error))) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		try, stop := context.WithTimeout(ctx, anyTimeout)
		answer, err := ask(try, p, kind, key, false, one(func() *process { reached(); return p.w.any(serves) }), hand)
		silent := try.Err() != nil
		stop()
		if err == nil || !silent || isOver(ctx) {
			return answer, err
		}
	}
}

// isOver reports whether a context has ended, or ends now: the last try and the whole
// question end at the same moment, and either timer may be the first.
func isOver(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(deadline)
}

func (t transportOf) AskRedelivery(ctx context.Context, q *queue.Redelivery) (queue.Reply, error) {
	return askAny(ctx, t.p, "redelivery", string(q.Job)+" "+strconv.Itoa(q.Deliveries), func() { t.p.w.history.asked(t.p, q.Job) },
		func(p *process) bool { return p.redelivery != nil },
		func(p *process, reply func(queue.Reply, error)) {
			p.mu.Lock()
			handler := p.redelivery
			p.mu.Unlock()
			if handler != nil {
				copied := *q
				handler(&copied, func(r queue.Reply) { reply(r, nil) })
			}
		})
}

func (t transportOf) AskHolder(ctx context.Context, job engine.JobID) (bool, error) {
	w, p := t.p.w, t.p
	ctx, cancel := context.WithTimeout(ctx, holderWait)
	defer cancel()
	o := &operation{p: p, kind: "holder", key: string(job), answers: true}
	o.exec = func() {
		for _, other := range w.alive(func(p *process) bool { return p.holds }) {
			if w.fault(w.profile.lost) {
				continue
			}
			w.after(w.latency(), &event{name: other.name + " is asked for " + string(job), owner: other, run: func() {
				if other.worker.Holds(job) {
					w.after(w.latency(), &event{name: other.name + " holds " + string(job) + ", " + p.name + " hears", owner: p, run: func() { o.finish(nil) }})
				}
			}})
		}
	}
	err := o.call(ctx)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, context.DeadlineExceeded):
		return false, nil
	}
	return false, err
}

func (p *process) loadMemory(ctx context.Context, session string, n int) ([]json.RawMessage, error) {
	return askAny(ctx, p, "ask memory", session, func() {},
		func(p *process) bool { return p.memory != nil },
		func(t *process, reply func([]json.RawMessage, error)) {
			t.mu.Lock()
			load := t.memory
			t.mu.Unlock()
			if load == nil {
				return
			}
			ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
			defer cancel()
			reply(load(ctx, session, n))
		})
}

// applyTable asks coordinators as long as nobody says what became of the request.
func (p *process) applyTable(ctx context.Context, r *table.Request) (*table.Answer, error) {
	c, answer := client{p: p}, &table.Answer{}
	for {
		err := c.api(queue.EndpointTable, r.Key, r, answer)
		if !c.again(err) {
			return answer, err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// sourceOf gives out jobs to one worker.
type sourceOf struct{ p *process }

// Next waits for a slot and then for a job.
func (s sourceOf) Next(ctx context.Context) (worker.Delivery, error) {
	p := s.p
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var given memqueue.Delivery
	o := &operation{p: p, kind: "take", reliable: true, answers: true}
	o.exec = func() { p.w.takers = append(p.w.takers, o) }
	o.given = &given
	if err := o.call(ctx); err != nil {
		<-p.slots
		return nil, err
	}
	d := &delivery{t: transportOf{p}, d: given, done: sync.OnceFunc(func() { <-p.slots })}
	if err := json.Unmarshal(given.Data, &d.job); err != nil {
		panic(err)
	}
	return d, nil
}

// pump gives what the streams have to those that wait for it.
func (w *world) pump() {
	w.takers = slices.DeleteFunc(w.takers, func(o *operation) bool { return o.ended || o.p.dead.Load() || !o.waiting() })
	for len(w.takers) > 0 {
		i := w.rng.IntN(len(w.takers))
		o := w.takers[i]
		if o.p.paused.After(w.now()) && w.rng.IntN(4) > 0 {
			break // its pull may still be there, or not
		}
		d, ok := w.jobs.Take(w.now(), queue.DefaultPool)
		if !ok {
			break
		}
		w.takers = slices.Delete(w.takers, i, i+1)
		w.deliver(o, d)
	}
	for w.submissions.Len() > 0 {
		p := w.any(func(p *process) bool { return p.submissions != nil })
		if p == nil {
			break
		}
		d, ok := w.submissions.Take(w.now(), "coordinators")
		if !ok {
			break
		}
		w.deliverSubmission(p, d)
	}
	w.expect(w.jobs)
	w.expect(w.submissions)
}

// expect has the streams looked at again when something in them comes due.
func (w *world) expect(s *memqueue.Stream) {
	next := s.Next(w.now())
	if at, planned := w.looks[s]; next.IsZero() || planned && at.After(w.now()) && !next.Before(at) {
		return
	}
	w.looks[s] = next
	w.after(next.Sub(w.now()), &event{name: "due", run: func() {}}) // the streams are looked at after every event
}

// deliver sends a job to the worker that waits for it.
func (w *world) deliver(o *operation, d memqueue.Delivery) {
	var job queue.Job
	if err := json.Unmarshal(d.Data, &job); err != nil {
		panic(err)
	}
	name := "job " + string(job.ID) + " (" + strconv.Itoa(d.Deliveries) + ") for " + o.p.name
	w.note("%s", name)
	w.history.delivered(o.p, &job, &d)
	if w.fault(w.profile.lost) {
		w.note("lost: %s", name)
		o.p.w.takers = append(o.p.w.takers, o) // the pull goes on without it
		return
	}
	w.after(w.latency(), &event{name: name, owner: o.p, run: func() {
		if !o.ended {
			*o.given = d
		}
		o.finish(nil)
	}})
}

// delivery is a job in the hands of a worker.
type delivery struct {
	t    transportOf
	d    memqueue.Delivery
	job  queue.Job
	done func()
}

func (d *delivery) Job() *queue.Job      { return &d.job }
func (d *delivery) Deliveries() int      { return d.d.Deliveries }
func (d *delivery) Published() time.Time { return d.d.Published }
func (d *delivery) Ack() string          { return d.d.Ack }
func (d *delivery) Done()                { d.done() }

func (d *delivery) InProgress() error {
	return d.t.signal("in progress", d.d.Ack, func(w *world) { w.jobs.InProgress(w.now(), d.d.Ack) })
}

func (d *delivery) Nak(delay time.Duration) error {
	return d.t.signal("nak", d.d.Ack, func(w *world) { w.jobs.Nak(w.now(), d.d.Ack, delay) })
}

func (d *delivery) Term() error {
	return d.t.signal("term", d.d.Ack, func(w *world) { w.jobs.Ack(d.d.Ack) })
}

// deliverSubmission hands a durable submission to a coordinator.
func (w *world) deliverSubmission(p *process, d memqueue.Delivery) {
	if w.fault(w.profile.lost) {
		return
	}
	s := &submission{t: transportOf{p}, d: d}
	if err := json.Unmarshal(d.Data, &s.sub); err != nil {
		panic(err)
	}
	w.after(w.latency(), &event{name: p.name + " gets submission " + string(s.sub.ID), owner: p, run: func() {
		p.mu.Lock()
		handler := p.submissions
		p.mu.Unlock()
		if handler != nil {
			go handler(s)
		}
	}})
}

type submission struct {
	t   transportOf
	d   memqueue.Delivery
	sub queue.Submission
}

func (s *submission) Submitted() *queue.Submission { return &s.sub }

func (s *submission) Ack() {
	_ = s.t.signal("ack submission", s.d.Ack, func(w *world) { w.submissions.Ack(s.d.Ack) })
}

func (s *submission) Nak(delay time.Duration) {
	_ = s.t.signal("nak submission", s.d.Ack, func(w *world) { w.submissions.Nak(w.now(), s.d.Ack, delay) })
}

func (s *submission) Term(problem *queue.Problem) {
	_ = s.t.signal("term submission", s.d.Ack, func(w *world) {
		w.submissions.Ack(s.d.Ack)
		w.fail("submission %s was refused: %s %s", s.sub.ID, problem.Code, strings.Join(problem.Details, "; "))
	})
}
