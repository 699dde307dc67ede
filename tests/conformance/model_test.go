package conformance

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// The streams of the walks: two with cursors of their own, one with details of
// both, one covered by the first.
var walkStreams = []string{"a", "b", "details", "covered"}

const walkManifest = `stream a
stream b
stream details parents=a,b
stream covered state=a`

// children are the streams whose records a cursor covers, itself first.
var children = map[string][]string{"a": {"a", "details", "covered"}, "b": {"b", "details"}}

// A model computes what must come of a script from the rules of docs/spec alone; it
// shares nothing with the code.
type model struct {
	batch int // records that make a batch

	emitted, attempted, dropped int
	buffered                    map[string]int
	staged                      []string
	reported                    map[[2]string]report
	gaps                        map[[3]string]bool // detail stream, parent, key
	failed                      map[string]bool
	open                        map[string]bool // assistance
	done                        *walkDone

	status, reason, subtype string
	committed, withheld     []string
}

type report struct{ required, hydrated []string }

type walkDone struct {
	status    string
	certified bool
	count     int
}

func newModel(batch int) *model {
	return &model{
		batch: batch, buffered: map[string]int{}, reported: map[[2]string]report{}, gaps: map[[3]string]bool{},
		failed: map[string]bool{}, open: map[string]bool{},
	}
}

func (m *model) over() bool { return m.status != "" }

// violate ends the run: nothing is committed, and what came before is kept.
func (m *model) violate(subtype string) {
	m.status, m.reason, m.subtype = abi.Failed, "connector_protocol_violation", subtype
	m.keep()
}

// keep stores what came before the run's end, however it ended.
func (m *model) keep() { m.flush(walkStreams...) }

func (m *model) flush(streams ...string) {
	for _, s := range streams {
		m.attempted += m.buffered[s]
		m.buffered[s] = 0
	}
}

// speak makes the check that precedes all others, and reports whether the message is
// processed at all.
func (m *model) speak() bool {
	if m.over() {
		return false
	}
	if m.done != nil {
		m.violate("message_after_done")
		return false
	}
	return true
}

func (m *model) record(stream, key string) {
	switch {
	case !m.speak():
	case key == "":
		m.violate("record_invalid_key")
	case !slices.Contains(walkStreams, stream):
		m.violate("record_for_undeclared_stream")
	default:
		m.emitted++
		if m.buffered[stream]++; m.buffered[stream] == m.batch {
			m.flush(stream)
		}
	}
}

func (m *model) state(stream string) {
	switch {
	case !m.speak():
	case !slices.Contains(walkStreams, stream):
		m.violate("state_for_undeclared_stream")
	case children[stream] == nil:
		m.violate("state_for_dependent_stream")
	default:
		m.flush(children[stream]...)
		if !slices.Contains(m.staged, stream) {
			m.staged = append(m.staged, stream)
		}
	}
}

func (m *model) skip(stream string, failed bool) {
	switch {
	case !m.speak():
	case stream != "" && !slices.Contains(walkStreams, stream):
		m.violate("skip_for_undeclared_stream")
	case failed && stream != "":
		m.failed[stream] = true
	}
}

func (m *model) gap(stream, parent, key string) {
	switch {
	case !m.speak():
	case !slices.Contains(walkStreams, stream):
		m.violate("detail_gap_for_undeclared_stream")
	default:
		m.gaps[[3]string{stream, parent, key}] = true
	}
}

func (m *model) coverage(stream, parent string, r report) {
	switch {
	case !m.speak():
	case stream == "covered":
		m.violate("coverage_for_state_stream_child")
	case stream == "details" && children[parent] == nil:
		m.violate("coverage_parent_not_declared")
	case m.has(stream, parent):
		m.violate("coverage_duplicate_report")
	default:
		m.reported[[2]string{stream, parent}] = r
	}
}

func (m *model) has(stream, parent string) bool {
	_, ok := m.reported[[2]string{stream, parent}]
	return ok
}

func (m *model) question() {
	if m.speak() {
		m.flush(walkStreams...)
	}
}

func (m *model) assist(id string) {
	switch {
	case !m.speak():
	case m.open[id]:
		m.violate("assistance_duplicate_id")
	default:
		m.open[id] = true
	}
}

func (m *model) assistStatus(id string) {
	switch {
	case !m.speak():
	case !m.open[id]:
		m.violate("assistance_status_unknown_id")
	default:
		delete(m.open, id)
	}
}

func (m *model) finish(d walkDone) {
	if !m.speak() {
		return
	}
	m.done = &d
	if d.status == abi.Succeeded {
		m.flush(walkStreams...)
	}
}

// exit is the end of the guest: code 0 or not, or a trap.
func (m *model) exit(clean, trapped bool) {
	d := m.done
	switch {
	case m.over():
		return
	case d == nil && trapped:
		m.status, m.reason = abi.Failed, "connector_trapped"
	case d == nil:
		m.status, m.reason = abi.Failed, "connector_exit_without_done"
	case clean != (d.status == abi.Succeeded):
		m.violate("exit_code_mismatch")
		return
	case d.count != m.emitted:
		m.violate("done_records_emitted_mismatch")
		return
	default:
		m.status = d.status
		if d.status != abi.Succeeded {
			m.reason = "connector_reported_" + d.status
		}
		m.commit()
	}
	m.keep()
}

// commit decides which staged cursors are committed. See docs/spec/protocol.md, "Which
// cursors are committed".
func (m *model) commit() {
	certified := m.done.status == abi.Failed && m.done.certified && len(m.failed) > 0
	if m.status != abi.Succeeded && !certified {
		return
	}
	for _, p := range m.staged {
		if m.short(p) || certified && m.untrusted(p) {
			m.withheld = append(m.withheld, p)
		} else {
			m.committed = append(m.committed, p)
		}
	}
}

// short reports whether the detail coverage of parent p falls short. See
// docs/spec/protocol.md, "Coverage shortfalls".
func (m *model) short(p string) bool {
	for _, s := range walkStreams {
		r, ok := m.reported[[2]string{s, p}]
		if !ok {
			if s == "details" {
				return true
			}
			continue
		}
		for _, k := range r.required {
			// details has two parents: a gap without one counts for neither.
			if !slices.Contains(r.hydrated, k) && !m.gaps[[3]string{s, p, k}] &&
				(s == "details" || !m.gaps[[3]string{s, "", k}]) {
				return true
			}
		}
	}
	return false
}

// untrusted reports whether a failed run may not commit the cursor of p: p itself, or a
// stream it covers, failed. Hydrated records are stored by then.
func (m *model) untrusted(p string) bool {
	return m.failed[p] || m.failed["details"] || p == "a" && m.failed["covered"]
}

func (m *model) commitStatus() string {
	switch {
	case len(m.staged) == 0 && m.status == abi.Succeeded:
		return "committed"
	case len(m.committed) == 0:
		return "not_committed"
	case len(m.committed) < len(m.staged):
		return "partially_committed"
	}
	return "committed"
}
