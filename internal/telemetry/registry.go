package telemetry

import (
	"errors"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// registry is the metrics of one service of a process.
type registry struct {
	*prometheus.Registry
	known *[]Metric // those that were made here
}

// Metric describes a metric.
type Metric struct {
	Name, Type string // "counter", "gauge" or "histogram"
	Labels     []string
	Help       string
}

// newRegistry has the metrics of the process and of Go, and which program it is.
func newRegistry(version string) registry {
	r := registry{prometheus.NewRegistry(), &[]Metric{}}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts(r.options("gauge", "reprise_build_info", "Always 1, with the version of the program.", "version")), []string{"version"})
	info.WithLabelValues(version).Set(1)
	r.MustRegister(info)
	return r
}

// options are those of a metric, which is noted.
func (r registry) options(kind, name, help string, labels ...string) prometheus.Opts {
	*r.known = append(*r.known, Metric{name, kind, labels, help})
	return prometheus.Opts{Name: name, Help: help}
}

func (r registry) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts(r.options("counter", name, help)))
	r.MustRegister(c)
	return c
}

func (r registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts(r.options("counter", name, help, labels...)), labels)
	r.MustRegister(c)
	return c
}

func (r registry) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts(r.options("gauge", name, help)))
	r.MustRegister(g)
	return g
}

func (r registry) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return r.histogramVec(name, help, buckets).WithLabelValues().(prometheus.Histogram)
}

func (r registry) histogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	o := r.options("histogram", name, help, labels...)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: o.Name, Help: o.Help, Buckets: buckets}, labels)
	r.MustRegister(h)
	return h
}

// asked is a metric whose value is asked for when the metrics are read.
type asked struct {
	*prometheus.Desc
	Metric
}

func newAsked(kind, name, help string, labels ...string) asked {
	return asked{prometheus.NewDesc(name, help, labels, nil), Metric{name, kind, labels, help}}
}

func (a asked) value(v float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if a.Type == "counter" {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(a.Desc, kind, v, labels...)
}

// CoordinatorMetrics are all metrics of a coordinator, but for those of Go and the process.
func CoordinatorMetrics() []Metric {
	return append(*NewCoordinator("", nil).registry.known, metricsOf(askedOfCoordinators)...)
}

// WorkerMetrics are the metrics of a worker, as CoordinatorMetrics.
func WorkerMetrics() []Metric {
	return append(*NewWorker("", nil).registry.known, metricsOf(askedOfWorkers)...)
}

func metricsOf(all []asked) (list []Metric) {
	for _, a := range all {
		list = append(list, a.Metric)
	}
	return list
}

// handler answers Prometheus.
func (r registry) handler(log *zap.Logger) http.Handler {
	return promhttp.HandlerFor(r.Registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{log}, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
		MaxRequestsInFlight: 4, // a scrape asks every lane and, now and then, Redis
	})
}

// scrapeLog is a promhttp.Logger.
type scrapeLog struct{ log *zap.Logger }

// Println implements promhttp.Logger.
func (l scrapeLog) Println(v ...any) {
	for _, one := range v {
		if err, ok := one.(error); ok && !errors.Is(err, io.ErrClosedPipe) {
			l.log.Debug("metrics were not all given", zap.Error(err))
		}
	}
}

// Buckets in seconds.
var (
	bucketsExecution = []float64{.01, .03, .1, .3, 1, 3, 10, 30, 100, 300, 1000, 3600, 6 * 3600, 24 * 3600}
	bucketsExchange  = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}
	bucketsJob       = []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100, 300, 1000}
	bucketsGroup     = []float64{1, 2, 4, 8, 16, 32, 64}
	bucketsLate      = []float64{.05, .1, .2, .3, .5, 1, 2, 5, 10, 30, 60, 300}
)
