package telemetry

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RunStarted counts a run by its trigger: manual, scheduled or retry.
func (m *Metrics) RunStarted(trigger string) {
	m.runsStarted.WithLabelValues(of(triggers, trigger)).Inc()
}

// RunEnded counts a finished run. reason is the terminal reason, "" for success.
func (m *Metrics) RunEnded(outcome, reason string, took time.Duration) {
	if reason == "" {
		reason = "none"
	}
	outcome = of(outcomes, outcome)
	m.runsEnded.WithLabelValues(outcome, of(reasons, reason)).Inc()
	m.runSeconds.WithLabelValues(outcome).Observe(took.Seconds())
}

// InteractionOpened counts a question by its kind.
func (m *Metrics) InteractionOpened(kind string) {
	m.opened.WithLabelValues(of(kinds, kind)).Inc()
}

// InteractionClosed counts a closed question by its status: success, cancelled, timeout, or lost if
// its run ended.
func (m *Metrics) InteractionClosed(status string) {
	m.answered.WithLabelValues(of(closings, status)).Inc()
}

// Request counts an answered HTTP request. route is the router's template, or "" if none matched.
func (m *Metrics) Request(method, route string, code int, took time.Duration) {
	method, route = of(methods, method), m.route(route)
	m.requests.WithLabelValues(strings.Clone(method), route, status(code)).Inc()
	m.requestTime.WithLabelValues(strings.Clone(method), route).Observe(took.Seconds())
}

// Delivery counts an attempt of a webhook: delivered, failed or dropped. It also counts a webhook
// that was disabled.
func (m *Metrics) Delivery(outcome string) {
	m.deliveries.WithLabelValues(of(delivered, outcome)).Inc()
}

// Tick counts a due time of a schedule that ran: succeeded, failed or cancelled. Skip counts the
// others.
func (m *Metrics) Tick(outcome string) {
	m.ticks.WithLabelValues(of(tickEnds, outcome)).Inc()
}

// Skip counts a due time that a gate refused. reason is the error of the skip record, of which only
// the class before a colon is used.
func (m *Metrics) Skip(reason string) {
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

// Allowed labels of browser actions: the table of verbs, the strategies of recovery, and so on.
var (
	verbs = []string{
		"open", "navigate", "click", "type", "fill", "clear", "press", "select", "check", "adjust",
		"scroll", "hover", "upload", "wait", "expect", "extract", "snapshot", "screenshot", "cookies", "mark", "close",
	}
	categories     = []string{"Navigation", "Input", "Selection", "Gesture", "ControlAdjustment"}
	effects        = []string{"local_state", "side_effect"}
	actionEnds     = []string{"verified", "failed"}
	failureClasses = []string{
		"TargetResolutionFailure", "ExecutionFailure", "VerificationFailure", "ControlConvergenceFailure",
		"SemanticMismatchFailure",
	}
	strategies = []string{"re_resolve", "alternate_candidate", "state_refresh", "retry_adjustment", "step_back"}
	stepEnds   = []string{"success", "failure"}
)

// A browserCounter is a counter about browsers with the allowed values of its labels.
type browserCounter struct {
	*prometheus.CounterVec
	labels map[string][]string
}

// browserCounters creates the counters under the browser's names for them.
func (m *Metrics) browserCounters() {
	m.browser = map[string]browserCounter{}
	add := func(name, help string, labels map[string][]string, order ...string) {
		c := browserCounter{m.counters("browser_"+name, help, order...), labels}
		if len(order) == 0 {
			c.WithLabelValues() // shown as 0
		}
		m.browser[name] = c
	}
	add("network_inspections_total",
		"Looks at the traffic of a page after an action, by effect; those of local_state must be none.",
		map[string][]string{"action_type": effects}, "action_type")
	add("actions_total", "Actions in browsers, by verb, category, effect and result.",
		map[string][]string{"action": verbs, "category": categories, "action_type": effects, "result": actionEnds}, "action",
		"category", "action_type", "result")
	add("first_pass_verified_total", "Actions that were proved without recovery.", nil)
	add("recovery_total", "Steps of recovery, by class of failure, strategy and result.",
		map[string][]string{"class": failureClasses, "strategy": strategies, "result": stepEnds}, "class",
		"strategy", "result")
	add("identical_retry_blocked_total", "Repetitions that were not tried, for they would have been the same again.", nil)
	add("coordinate_fallback_total", "Adjustments that were made by coordinates.", nil)
	add("events_undecodable_total",
		"Events of browsers that the host does not know; with the one it was tested with there are none.", nil)
	add("stale_reads_total", "Looks at a page that had to be repeated, for it changed meanwhile.", nil)
	m.browser["network_inspections_total"].WithLabelValues("local_state") // shown as 0
}

// Browser increments a counter about browsers; labels are pairs of name and value. An unknown name
// counts nothing.
func (m *Metrics) Browser(name string, labels ...string) {
	c, ok := m.browser[name]
	if !ok {
		return
	}
	values := prometheus.Labels{}
	for label := range c.labels {
		values[label] = other
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if known, ok := c.labels[labels[i]]; ok {
			values[labels[i]] = of(known, labels[i+1])
		}
	}
	c.With(values).Inc()
}
