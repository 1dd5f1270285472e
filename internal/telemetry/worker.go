package telemetry

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Worker is what a worker tells of itself. nil is silent. Methods may be called from any
// goroutine.
type Worker struct {
	registry registry
	tracing  *Tracing
	models   bounded

	jobs                         *family[jobRun, jobMetrics]
	redelivered, dropped, leases prometheus.Counter
	abandoned, unconfirmed       prometheus.Gauge
	calls                        *family[modelCall, prometheus.Counter]
	tokens                       *family[modelName, tokenMetrics]
	requests                     *family[string, prometheus.Counter]
}

type jobRun struct{ nodeType, outcome string }

type jobMetrics struct {
	count   prometheus.Counter
	seconds prometheus.Observer
}

// NewWorker makes the metrics of a worker. version is the program's. tracing may be nil.
func NewWorker(version string, tracing *Tracing) *Worker {
	r := newRegistry(version)
	w := &Worker{registry: r, tracing: tracing, models: newBounded()}
	jobs := r.counters("reprise_worker_jobs_total", "Jobs that were run, by node type and outcome: success, requested (an Agent asks for tools), parked (it waits), error, timeout, stopped.", "node_type", "outcome")
	seconds := r.histogramVec("reprise_worker_job_duration_seconds", "Time that a node's code took.", bucketsJob, "node_type")
	w.jobs = newFamily(func(j jobRun) jobMetrics {
		return jobMetrics{jobs.WithLabelValues(j.nodeType, j.outcome), seconds.WithLabelValues(j.nodeType)}
	})
	w.redelivered = r.counter("reprise_worker_jobs_redelivered_total", "Jobs received that may have been given to a worker before.")
	w.dropped = r.counter("reprise_worker_jobs_dropped_total", "Jobs not run, or stopped, because they no longer count: answered, cancelled or timed out.")
	w.leases = r.counter("reprise_worker_leases_extended_total", "Signs of life sent for jobs that are held.")
	w.abandoned = r.gauge("reprise_worker_code_abandoned", "Runs of node code that do not end although their time is over; they keep no slot.")
	w.unconfirmed = r.gauge("reprise_worker_results_unconfirmed", "Results that no coordinator has confirmed yet.")
	w.modelMetrics()
	requests := r.counters("reprise_http_requests_total", "HTTP requests of nodes and models, by outcome: 1xx to 5xx, error, refused (the address may not be reached, see REPRISE_EGRESS).", "outcome")
	w.requests = newFamily(func(outcome string) prometheus.Counter { return requests.WithLabelValues(outcome) })
	w.requests.get(httpRefused)
	return w
}

// Handler answers Prometheus at /metrics.
func (w *Worker) Handler(log *zap.Logger) http.Handler { return w.registry.handler(log) }

// WorkerFigures are what a worker is asked when its metrics are read.
type WorkerFigures struct {
	// Slots is how many jobs of each pool run at once, Busy how many are held.
	Slots map[string]int
	Busy  func() map[string]int
	NATS  func() queue.Stats
}

// Watch sets what is asked. It is called once, before the metrics are read.
func (w *Worker) Watch(f WorkerFigures) {
	if w != nil {
		w.registry.MustRegister(workerCollector{f})
	}
}

type workerCollector struct{ f WorkerFigures }

var (
	descSlots = newAsked("gauge", "reprise_worker_slots", "Jobs of the pool that the worker runs at once.", "pool")
	descBusy  = newAsked("gauge", "reprise_worker_jobs_held", "Jobs of the pool that the worker holds: those that run, and those whose result is not confirmed.", "pool")
)

// askedOfWorkers are what workerCollector collects.
var askedOfWorkers = []asked{descSlots, descBusy, descMessages, descBytes, descReconnects}

// Describe implements prometheus.Collector.
func (workerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, a := range askedOfWorkers {
		ch <- a.Desc
	}
}

// Collect implements prometheus.Collector.
func (c workerCollector) Collect(ch chan<- prometheus.Metric) {
	busy := c.f.Busy()
	for pool, n := range c.f.Slots { // the worker's own settings
		ch <- descSlots.value(float64(n), pool)
		ch <- descBusy.value(float64(busy[pool]), pool)
	}
	collectNATS(ch, c.f.NATS())
}

// Outcomes of a job.
const (
	jobSuccess   = "success"
	jobRequested = "requested"
	jobParked    = "parked"
	jobError     = "error"
	jobTimeout   = "timeout"
	jobStopped   = "stopped"
)

// outcomeOf is the outcome of a run; stopped is that of one without a result.
func outcomeOf(r *node.Result, err error) string {
	switch {
	case err != nil:
		return jobStopped
	case r.Error != nil && r.Error.Reason == engine.ReasonTimeout:
		return jobTimeout
	case r.Error != nil:
		return jobError
	case r.Request != nil:
		return jobRequested
	case r.Wait != nil:
		return jobParked
	}
	return jobSuccess
}

// Job observes the run of a job's node. What the node does is done with ctx; end is called with
// what came of it.
func (w *Worker) Job(ctx context.Context, job *queue.Job, n *workflow.Node, p *queue.Plan) (_ context.Context, end func(*node.Result, error)) {
	if w == nil {
		return ctx, func(*node.Result, error) {}
	}
	start := time.Now()
	ctx, span := w.tracing.job(ctx, job, n, p)
	return ctx, func(r *node.Result, err error) {
		outcome := outcomeOf(r, err)
		w.ran(n.Type, outcome, time.Since(start))
		if span != nil {
			w.tracing.endJob(span, outcome, r)
		}
	}
}

// ran counts a run.
func (w *Worker) ran(nodeType, outcome string, took time.Duration) {
	m := w.jobs.get(jobRun{nodeType, outcome})
	m.count.Inc()
	m.seconds.Observe(took.Seconds())
}

// Redelivered counts a job that may have been given to a worker before.
func (w *Worker) Redelivered() {
	if w != nil {
		w.redelivered.Inc()
	}
}

// Dropped counts a job that no longer counts.
func (w *Worker) Dropped() {
	if w != nil {
		w.dropped.Inc()
	}
}

// LeaseExtended counts a sign of life.
func (w *Worker) LeaseExtended() {
	if w != nil {
		w.leases.Inc()
	}
}

// Abandoned adds to the number of runs that do not end.
func (w *Worker) Abandoned(delta int) {
	if w != nil {
		w.abandoned.Add(float64(delta))
	}
}

// Unconfirmed adds to the number of results that are not confirmed.
func (w *Worker) Unconfirmed(delta int) {
	if w != nil {
		w.unconfirmed.Add(float64(delta))
	}
}
