package telemetry

import (
	"strings"
	"time"
)

// RunStarted counts a run: manual, scheduled or retry.
func (m *Metrics) RunStarted(trigger string) {
	if m == nil {
		return
	}
	m.runsStarted.WithLabelValues(of(triggers, trigger)).Inc()
}

// RunEnded counts a run that is over; reason is the terminal one, "" for
// success.
func (m *Metrics) RunEnded(outcome, reason string, took time.Duration) {
	if m == nil {
		return
	}
	if reason == "" {
		reason = "none"
	}
	outcome = of(outcomes, outcome)
	m.runsEnded.WithLabelValues(outcome, of(reasons, reason)).Inc()
	m.runSeconds.WithLabelValues(outcome).Observe(took.Seconds())
}

// InteractionOpened counts a question by its kind.
func (m *Metrics) InteractionOpened(kind string) {
	if m == nil {
		return
	}
	m.opened.WithLabelValues(of(kinds, kind)).Inc()
}

// InteractionClosed counts success, cancelled, timeout, or lost: its run ended.
func (m *Metrics) InteractionClosed(status string) {
	if m == nil {
		return
	}
	m.answered.WithLabelValues(of(closings, status)).Inc()
}

// WorkerSpawned counts a process: blank, run, compile or check.
func (m *Metrics) WorkerSpawned(purpose string) {
	if m == nil {
		return
	}
	m.spawned.WithLabelValues(of(purposes, purpose)).Inc()
}

// WorkerKilled counts a process that the host stopped: cancel, budget, memory,
// violation, protocol, shutdown or fault.
func (m *Metrics) WorkerKilled(cause string) {
	if m == nil {
		return
	}
	m.killed.WithLabelValues(of(causes, cause)).Inc()
}

// Request counts an answered HTTP request. route is the router's template, ""
// when no route took it.
func (m *Metrics) Request(method, route string, code int, took time.Duration) {
	if m == nil {
		return
	}
	method, route = of(methods, method), m.route(route)
	m.requests.WithLabelValues(strings.Clone(method), route, status(code)).Inc()
	m.requestTime.WithLabelValues(strings.Clone(method), route).Observe(took.Seconds())
}

// Delivery counts an attempt of a webhook: delivered, failed or dropped; and
// disabled, for a webhook.
func (m *Metrics) Delivery(outcome string) {
	if m == nil {
		return
	}
	m.deliveries.WithLabelValues(of(delivered, outcome)).Inc()
}

// Tick counts a due time of a schedule: started, retried, overlapped or failed.
func (m *Metrics) Tick(outcome string) {
	if m == nil {
		return
	}
	m.ticks.WithLabelValues(of(tickEnds, outcome)).Inc()
}

// Skip counts a due time that a gate refused. reason is the
// error of the skip record; only its class, before a colon, is kept.
func (m *Metrics) Skip(reason string) {
	if m == nil {
		return
	}
	class, _, _ := strings.Cut(reason, ":")
	switch {
	case class == "single_use grant already consumed":
		class = "grant_consumed"
	case strings.HasSuffix(class, "grant no longer usable"):
		class = "grant_unusable"
	}
	m.ticks.WithLabelValues("skipped").Inc()
	m.skips.WithLabelValues(of(skipReason, class)).Inc()
}
