package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Runs counts the runs of this process that are not over.
type Runs struct{ Active, Queued, Waiting, Paused int }

// Workers counts the worker processes that live.
type Workers struct{ Blank, Busy int }

// Space is what the store takes and what is left for it, in bytes.
type Space struct{ Used, Free uint64 }

// live are functions that are asked when metrics are read.
type live struct {
	runs        atomic.Pointer[func() Runs]
	workers     atomic.Pointer[func() Workers]
	space       atomic.Pointer[func() (Space, bool)]
	subscribers atomic.Pointer[func() int]
	open        atomic.Pointer[func() int]
}

// AskRuns has f asked for the runs whenever metrics are read. It is quick and
// may be called concurrently; so are those of the other Ask methods.
func (m *Metrics) AskRuns(f func() Runs) { m.live.runs.Store(&f) }

// AskWorkers has f asked for the workers.
func (m *Metrics) AskWorkers(f func() Workers) { m.live.workers.Store(&f) }

// AskSpace has f asked for the store's size; false leaves it out.
func (m *Metrics) AskSpace(f func() (Space, bool)) { m.live.space.Store(&f) }

// AskSubscribers has f asked for the open event streams and long polls.
func (m *Metrics) AskSubscribers(f func() int) { m.live.subscribers.Store(&f) }

// AskInteractions has f asked for the questions that are open.
func (m *Metrics) AskInteractions(f func() int) { m.live.open.Store(&f) }

// gauges registers what is read from live.
func (m *Metrics) gauges() { m.registry.MustRegister(&m.live) }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sluice_"+name, help, labels, nil)
}

var (
	runsDesc        = desc("runs_open", "Runs that are not over, by state. Active is all of them; the other states are parts of it.", "state")
	workersDesc     = desc("workers", "Worker processes that live: blank ones wait for a run.", "state")
	usedDesc        = desc("store_bytes", "Bytes that the store takes.")
	freeDesc        = desc("store_free_bytes", "Bytes that are left where the store is.")
	subscribersDesc = desc("sse_subscribers", "Event streams and long polls that are open.")
	openDesc        = desc("interactions_open", "Questions that wait for the owner.")
)

// Describe implements prometheus.Collector.
func (l *live) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runsDesc, workersDesc, usedDesc, freeDesc, subscribersDesc, openDesc} {
		c <- d
	}
}

// Collect implements prometheus.Collector. What nobody answers for is left out.
func (l *live) Collect(c chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if f := l.runs.Load(); f != nil {
		r := (*f)()
		set(runsDesc, float64(r.Active), "active")
		set(runsDesc, float64(r.Queued), "queued")
		set(runsDesc, float64(r.Waiting), "waiting")
		set(runsDesc, float64(r.Paused), "paused")
	}
	if f := l.workers.Load(); f != nil {
		w := (*f)()
		set(workersDesc, float64(w.Blank), "blank")
		set(workersDesc, float64(w.Busy), "busy")
	}
	if f := l.space.Load(); f != nil {
		if s, ok := (*f)(); ok {
			set(usedDesc, float64(s.Used))
			set(freeDesc, float64(s.Free))
		}
	}
	if f := l.subscribers.Load(); f != nil {
		set(subscribersDesc, float64((*f)()))
	}
	if f := l.open.Load(); f != nil {
		set(openDesc, float64((*f)()))
	}
}
