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
type registry struct{ *prometheus.Registry }

// newRegistry has the metrics of the process and of Go, and which program it is.
func newRegistry(version string) registry {
	r := registry{prometheus.NewRegistry()}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "reprise_build_info", Help: "Always 1, with the version of the program.",
	}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	r.MustRegister(info)
	return r
}

func (r registry) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func (r registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

func (r registry) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

func (r registry) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.MustRegister(h)
	return h
}

func (r registry) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(h)
	return h
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
