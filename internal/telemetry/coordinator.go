package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// Coordinator is what a coordinator tells of itself. nil is silent. Methods may be called
// from any goroutine.
type Coordinator struct {
	registry registry
	tracing  *Tracing
	pools    bounded

	started                  prometheus.Counter
	finished                 *family[finish, finished]
	commits                  *family[string, prometheus.Counter]
	commitSeconds, groupSize prometheus.Histogram
	delay                    prometheus.Histogram
	jobs                     *family[jobOutcome, prometheus.Counter]
	submissions              *family[string, prometheus.Counter]
	late                     prometheus.Histogram
	sweeps                   prometheus.Counter
	dead                     *family[string, prometheus.Counter]
}

type finish struct {
	status engine.Status
	reason string
}

type finished struct {
	count   prometheus.Counter
	seconds prometheus.Observer
}

type jobOutcome struct{ pool, outcome string }

// NewCoordinator makes the metrics of a coordinator. version is the program's. tracing may be nil.
func NewCoordinator(version string, tracing *Tracing) *Coordinator {
	r := newRegistry(version)
	c := &Coordinator{registry: r, tracing: tracing, pools: newBounded()}
	c.started = r.counter("reprise_executions_started_total", "Executions that began; those that wait for their turn begin when they get it.")
	ends := r.counters("reprise_executions_finished_total", "Executions that ended, by status (success, error, canceled) and the reason of an error.", "status", "reason")
	seconds := r.histogramVec("reprise_execution_duration_seconds", "Time from the beginning of an execution to its end, waits included.", bucketsExecution, "status")
	c.finished = newFamily(func(f finish) finished {
		return finished{ends.WithLabelValues(string(f.status), f.reason), seconds.WithLabelValues(string(f.status))}
	})
	commits := r.counters("reprise_commits_total", "Executions committed to Redis, by result: ok, refused (another coordinator was first, done again), exists (submitted before), error.", "result")
	c.commits = newFamily(func(result string) prometheus.Counter { return commits.WithLabelValues(result) })
	c.commitSeconds = r.histogram("reprise_commit_duration_seconds", "Time of the round trip to Redis that commits a group.", bucketsExchange)
	c.groupSize = r.histogram("reprise_event_group_size", "Events that a lane handled together.", bucketsGroup)
	c.delay = r.histogram("reprise_event_delay_seconds", "Time that the first event of a group waited for its lane.", bucketsExchange)
	jobs := r.counters("reprise_jobs_published_total", "Jobs handed to NATS, by pool and outcome: ok, refused (queued or running already), error (tried again).", "pool", "outcome")
	c.jobs = newFamily(func(o jobOutcome) prometheus.Counter { return jobs.WithLabelValues(o.pool, o.outcome) })
	submissions := r.counters("reprise_submissions_total", "Submissions answered, by code: accepted, or the code of the refusal.", "code")
	c.submissions = newFamily(func(code string) prometheus.Counter { return submissions.WithLabelValues(code) })
	c.late = r.histogram("reprise_timer_lateness_seconds", "How late timers (retries, timeouts, waits) were taken.", bucketsLate)
	c.sweeps = r.counter("reprise_executions_swept_total", "Executions that were looked at because they gave no sign of life.")
	dead := r.counters("reprise_dead_letters_total", "Jobs and durable submissions given up for good, by reason.", "reason")
	c.dead = newFamily(func(reason string) prometheus.Counter { return dead.WithLabelValues(reason) })
	for _, result := range []string{CommitOK, CommitRefused, CommitExists, CommitFailed} { // a rate needs a beginning
		c.commits.get(result)
	}
	for _, status := range []engine.Status{engine.StatusSuccess, engine.StatusError, engine.StatusCanceled} {
		c.finished.get(finish{status: status})
	}
	c.submissions.get(accepted)
	c.dead.get(string(engine.ReasonWorkerLost))
	return c
}

// Handler answers Prometheus at /metrics.
func (c *Coordinator) Handler(log *zap.Logger) http.Handler { return c.registry.handler(log) }

// Started counts an execution that has begun.
func (c *Coordinator) Started() {
	if c != nil {
		c.started.Inc()
	}
}

// reasons that are values of labels.
var reasons = map[engine.Reason]bool{
	"": true, engine.ReasonTimeout: true, engine.ReasonWorkerLost: true, engine.ReasonBadArguments: true, engine.ReasonUnknownTool: true,
	engine.ReasonTooLarge: true, engine.ReasonCanceled: true, engine.ReasonModel: true, engine.ReasonExpression: true,
	engine.ReasonBadRequest: true, engine.ReasonTooManyRuns: true, engine.ReasonTooDeep: true,
}

func reasonValue(r engine.Reason) string {
	if !reasons[r] {
		return otherValue // node code may give any
	}
	return string(r)
}

// Finished counts an execution that has ended, and writes its span.
func (c *Coordinator) Finished(meta *engine.Meta) {
	if c == nil {
		return
	}
	f := finish{status: meta.Status}
	if meta.Error != nil {
		f.reason = reasonValue(meta.Error.Reason)
	}
	m := c.finished.get(f)
	m.count.Inc()
	if meta.StartedAt > 0 {
		m.seconds.Observe(float64(meta.StoppedAt-meta.StartedAt) / 1000)
	}
	c.tracing.execution(meta)
}

// FinishedAgain writes the span of an execution whose end was committed by a process that may
// have died before it wrote it. The span is the same, so that a second one adds nothing.
func (c *Coordinator) FinishedAgain(meta *engine.Meta) {
	if c != nil {
		c.tracing.execution(meta)
	}
}

// Results of a commit.
const (
	CommitOK      = "ok"
	CommitRefused = "refused"
	CommitExists  = "exists"
	CommitFailed  = "error"
)

// Committed counts one execution of a commit.
func (c *Coordinator) Committed(result string) {
	if c != nil {
		c.commits.get(result).Inc()
	}
}

// CommitTook notes the time of a group's commit.
func (c *Coordinator) CommitTook(took time.Duration) {
	if c != nil {
		c.commitSeconds.Observe(took.Seconds())
	}
}

// Group notes that a lane takes so many events, the first of which has waited for so long.
func (c *Coordinator) Group(size int, delay time.Duration) {
	if c != nil {
		c.groupSize.Observe(float64(size))
		c.delay.Observe(delay.Seconds())
	}
}

// Outcomes of publishing a job.
const (
	PublishOK      = "ok"
	PublishRefused = "refused"
	PublishFailed  = "error"
)

// Published counts a job that was handed to NATS.
func (c *Coordinator) Published(pool, outcome string) {
	if c != nil {
		c.jobs.get(jobOutcome{c.pools.value(poolName(pool)), outcome}).Inc()
	}
}

func poolName(pool string) string {
	if pool == "" {
		return queue.DefaultPool
	}
	return pool
}

const accepted = "accepted"

// Submission counts a submission that was answered; problem is nil for one that was accepted.
func (c *Coordinator) Submission(problem *queue.Problem) {
	if c == nil {
		return
	}
	code := accepted
	if problem != nil {
		code = problem.Code
	}
	c.submissions.get(code).Inc()
}

// TimerLate notes how late a timer was taken.
func (c *Coordinator) TimerLate(late time.Duration) {
	if c != nil {
		c.late.Observe(late.Seconds())
	}
}

// Swept counts executions that are looked at because they gave no sign of life.
func (c *Coordinator) Swept(n int) {
	if c != nil {
		c.sweeps.Add(float64(n))
	}
}

// Dead counts a dead letter; reason is that of the node's failure, or the code of a problem.
func (c *Coordinator) Dead(reason engine.Reason) {
	if c != nil {
		c.dead.get(reasonValue(reason)).Inc()
	}
}

// Refused counts the dead letter of a durable submission that was refused.
func (c *Coordinator) Refused(problem *queue.Problem) {
	if c != nil {
		c.dead.get(problem.Code).Inc()
	}
}
