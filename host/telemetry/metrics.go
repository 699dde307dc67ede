package telemetry

import (
	"io"
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// ContentType is what Write writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Metrics are the metrics of one host. All methods may be called concurrently;
// those of a nil *Metrics do nothing.
type Metrics struct {
	registry *prometheus.Registry

	runsStarted   *prometheus.CounterVec
	runsEnded     *prometheus.CounterVec
	runSeconds    *prometheus.HistogramVec
	records       *prometheus.CounterVec
	recordBytes   prometheus.Counter
	batchRecords  prometheus.Histogram
	batchSeconds  prometheus.Histogram
	commitSeconds prometheus.Histogram
	commits       *prometheus.CounterVec
	opened        *prometheus.CounterVec
	answered      *prometheus.CounterVec
	spawned       *prometheus.CounterVec
	killed        *prometheus.CounterVec
	requests      *prometheus.CounterVec
	requestTime   *prometheus.HistogramVec
	deliveries    *prometheus.CounterVec
	ticks         *prometheus.CounterVec
	skips         *prometheus.CounterVec
	browser       map[string]browserCounter // by name; not written once made

	live live

	mu     sync.Mutex      // guards routes
	routes map[string]bool // that have a label of their own
}

// latency has a bucket for a commit in memory and for one on a slow disk.
var latency = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// NewMetrics makes the metrics of a host of this version and commit.
func NewMetrics(version, commit string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), routes: map[string]bool{}}
	m.runsStarted = m.counters("runs_started_total", "Runs that were accepted, by what triggered them.", "trigger")
	m.runsEnded = m.counters("runs_total", "Runs that are over, by outcome and class of reason.", "outcome", "reason")
	m.runSeconds = m.histograms("run_seconds", "How long runs took, waiting included, by outcome.",
		[]float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}, "outcome")
	m.records = m.counters("records_total", "Records that are durable, by what became of them: changed or unchanged.", "result")
	m.recordBytes = m.counter("record_bytes_total", "Bytes of records that are durable.")
	m.batchRecords = m.histogram("batch_records", "Records in a batch.", []float64{1, 5, 25, 100, 250, 500, 1000})
	m.batchSeconds = m.histogram("batch_seconds", "From handing a batch over to its being durable.", latency)
	m.commitSeconds = m.histogram("store_commit_seconds", "From handing any commit of a run over to its being durable.", latency)
	m.commits = m.counters("store_commits_total", "Commits of runs, by result: ok, fenced, full or failed.", "result")
	m.opened = m.counters("interactions_opened_total", "Questions to the owner, by kind.", "kind")
	m.answered = m.counters("interactions_closed_total", "Questions that are closed, by status.", "status")
	m.spawned = m.counters("workers_spawned_total", "Worker processes begun, by purpose.", "purpose")
	m.killed = m.counters("workers_killed_total", "Worker processes stopped by the host, by cause.", "cause")
	m.requests = m.counters("http_requests_total", "HTTP requests, by method, route template and status.", "method", "route", "status")
	m.requestTime = m.histograms("http_request_seconds", "Until an answer was complete or a stream began, by method and route template.", latency, "method", "route")
	m.deliveries = m.counters("webhook_deliveries_total", "Attempts to deliver to webhooks, by outcome, and webhooks disabled.", "outcome")
	m.ticks = m.counters("schedule_ticks_total", "Due times of schedules, by outcome.", "outcome")
	m.skips = m.counters("schedule_skips_total", "Due times that started nothing, by reason.", "reason")
	m.browserCounters()
	m.build(version, commit)
	m.gauges()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) build(version, commit string) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "sluice", Name: "build_info", Help: "1, with what runs as labels.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "go": runtime.Version()},
	})
	g.Set(1)
	m.registry.MustRegister(g)
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "sluice", Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "sluice", Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "sluice", Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "sluice", Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// Write writes all metrics in Prometheus' text format. A metric that cannot be
// read is left out, and reported once the rest was written.
func (m *Metrics) Write(w io.Writer) error {
	families, gathering := m.registry.Gather()
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return gathering
}

// ServeHTTP implements http.Handler.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", ContentType)
	_ = m.Write(w) // whoever asked is gone, or has the rest
}
