// Package telemetry measures the host: metrics for a monitoring system, and
// spans for a tracing one.
//
// Whoever reports calls a method, or is asked by a function when metrics are
// read; nobody waits for either. Labels are taken from short fixed lists, and
// anything else is counted as "other": no label holds a record, a message, a
// name that somebody chose, or an id. The same is true of spans but for the
// attributes listed in trace.go.
package telemetry

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// Metrics are the metrics of one host. They are safe for concurrent use.
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
	requests      *prometheus.CounterVec
	requestTime   *prometheus.HistogramVec
	deliveries    *prometheus.CounterVec
	ticks         *prometheus.CounterVec
	skips         *prometheus.CounterVec
	browser       map[string]browserCounter // by name; immutable

	live live

	mu     sync.Mutex      // guards routes
	routes map[string]bool // routes with a label of their own
}

// latency has buckets from a commit in memory to one on a slow disk.
var latency = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// NewMetrics returns the metrics of a host with this version and commit.
func NewMetrics(version, commit string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), routes: map[string]bool{}}
	m.runsStarted = m.counters("runs_started_total", "Runs that were accepted, by what triggered them.", "trigger")
	m.runsEnded = m.counters("runs_total", "Runs that are over, by outcome and class of reason.", "outcome", "reason")
	m.runSeconds = m.histograms("run_seconds", "How long runs took, waiting included, by outcome.",
		[]float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}, "outcome")
	m.records = m.counters("records_total", "Records that are durable, by what became of them: changed or unchanged.",
		"result")
	m.recordBytes = m.counter("record_bytes_total", "Bytes of records that are durable.")
	m.batchRecords = m.histogram("batch_records", "Records in a batch.", []float64{1, 5, 25, 100, 250, 500, 1000})
	m.batchSeconds = m.histogram("batch_seconds", "From handing a batch over to its being durable.", latency)
	m.commitSeconds = m.histogram("store_commit_seconds", "From handing any commit of a run over to its being durable.",
		latency)
	m.commits = m.counters("store_commits_total", "Commits of runs, by result: ok, fenced, full or failed.", "result")
	m.opened = m.counters("interactions_opened_total", "Questions to the owner, by kind.", "kind")
	m.answered = m.counters("interactions_closed_total", "Questions that are closed, by status.", "status")
	m.requests = m.counters("http_requests_total", "HTTP requests, by method, route template and status.",
		"method", "route", "status")
	m.requestTime = m.histograms("http_request_seconds",
		"Until an answer was complete or a stream began, by method and route template.", latency, "method", "route")
	m.deliveries = m.counters("webhook_deliveries_total",
		"Attempts to deliver to webhooks, by outcome, and webhooks disabled.", "outcome")
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
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "sluice", Name: name, Help: help,
		Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// Write writes all metrics in Prometheus' text format. A metric that cannot be read is left out,
// and its error is returned after the others were written.
func (m *Metrics) Write(w io.Writer) error {
	families, gathering := m.registry.Gather()
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return gathering
}

// Runs counts the active runs of this process.
type Runs struct{ Active, Queued, Waiting, Paused int }

// Workers counts the running worker processes.
type Workers struct{ Blank, Busy int }

// Space is the size of the store and the free space, in bytes.
type Space struct{ Used, Free uint64 }

// Sources are called whenever metrics are read. They must be quick and safe for concurrent use;
// metrics of a nil source are left out.
type Sources struct {
	Runs        func() Runs
	Workers     func() Workers
	Space       func() (Space, bool) // of the store; false if unknown
	Subscribers func() int           // open event streams and long polls
	Open        func() int           // open questions
	Polling     func() bool          // the store is polled, since other hosts do not wake it
}

// live collects the metrics of Sources.
type live struct{ sources atomic.Pointer[Sources] }

// Ask sets the sources.
func (m *Metrics) Ask(s Sources) { m.live.sources.Store(&s) }

// gauges registers live.
func (m *Metrics) gauges() { m.registry.MustRegister(&m.live) }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sluice_"+name, help, labels, nil)
}

var (
	runsDesc = desc("runs_open",
		"Runs that are not over, by state. Active is all of them; the other states are parts of it.", "state")
	workersDesc     = desc("workers", "Worker processes that live: blank ones wait for a run.", "state")
	usedDesc        = desc("store_bytes", "Bytes that the store takes.")
	freeDesc        = desc("store_free_bytes", "Bytes that are left where the store is.")
	subscribersDesc = desc("sse_subscribers", "Event streams and long polls that are open.")
	pollingDesc     = desc("store_polling", "1 while the store looks for what other hosts did, because it is not woken.")
	openDesc        = desc("interactions_open", "Questions that wait for the owner.")
)

// Describe implements prometheus.Collector.
func (l *live) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runsDesc, workersDesc, usedDesc, freeDesc, subscribersDesc,
		openDesc, pollingDesc} {
		c <- d
	}
}

// Collect implements prometheus.Collector. Metrics without a source are left out.
func (l *live) Collect(c chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := l.sources.Load()
	if s == nil {
		return
	}
	if s.Runs != nil {
		r := s.Runs()
		set(runsDesc, float64(r.Active), "active")
		set(runsDesc, float64(r.Queued), "queued")
		set(runsDesc, float64(r.Waiting), "waiting")
		set(runsDesc, float64(r.Paused), "paused")
	}
	if s.Workers != nil {
		w := s.Workers()
		set(workersDesc, float64(w.Blank), "blank")
		set(workersDesc, float64(w.Busy), "busy")
	}
	if s.Space != nil {
		if space, ok := s.Space(); ok {
			set(usedDesc, float64(space.Used))
			set(freeDesc, float64(space.Free))
		}
	}
	if s.Subscribers != nil {
		set(subscribersDesc, float64(s.Subscribers()))
	}
	if s.Open != nil {
		set(openDesc, float64(s.Open()))
	}
	if s.Polling != nil {
		v := 0.0
		if s.Polling() {
			v = 1
		}
		set(pollingDesc, v)
	}
}
