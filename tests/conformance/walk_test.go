package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A walk draws a script, message by message, and tells the model the same.
//
// One walk in three is wild; the others break no rule on the way, so that they
// get as far as the rules of the end.
type walk struct {
	wild   bool
	t      *rapid.T
	m      *model
	script []fakeCall
}

// Random scripts end as the model says, in any order and with any faults.
func TestRandomWalks(t *testing.T) {
	st, err := badger.OpenURL("memory:?memory=small", badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		g := &stage{connection: store.ConnectionID(fmt.Sprintf("walk-%d", n)), scenario: walkScenario()}
		g.host = shared.host.Over(st)
		w := &walk{t: rt, m: newModel(3), script: started(), wild: rapid.IntRange(0, 2).Draw(rt, "wild") == 0}
		for range rapid.IntRange(0, 16).Draw(rt, "messages") {
			w.message()
		}
		exit := w.end()
		p := g.perform(rt, newFakeGuest(w.script, exit), nil, func(in *run.Input, d *run.Deps) {
			in.Limits.FlushRecords = 3
			d.Owner = &scripted{play: &played{}, answers: w.answers()}
		})
		g.invariants(rt, p)
		w.compare(p)
	})
}

func walkScenario() *scenario {
	s := &scenario{name: "walk"}
	for _, l := range strings.Split(walkManifest, "\n") {
		_, rest, _ := strings.Cut(l, " ")
		s.setup = append(s.setup, directive{"stream", rest})
	}
	return s
}

func (w *walk) answers() []string {
	var out []string
	for range w.script {
		out = append(out, rapid.SampledFrom([]string{"success", "cancelled", "timeout"}).Draw(w.t, "answer"))
	}
	return out
}

// pick draws a good value, or, rarely and in a wild walk only, the bad one.
func (w *walk) pick(name, bad string, good ...string) string {
	if w.wild && w.seldom(name+" wrong") {
		return bad
	}
	return rapid.SampledFrom(good).Draw(w.t, name)
}

// seldom is true one time in ten.
func (w *walk) seldom(name string) bool { return rapid.IntRange(0, 9).Draw(w.t, name) == 0 }

// wrong is rarely true, and in a wild walk only.
func (w *walk) wrong(name string) bool { return w.wild && w.seldom(name) }

func (w *walk) say(c abi.Call, message string, args ...any) {
	w.script = append(w.script, say(c, fmt.Sprintf(message, args...)))
}

var keys = []string{"1", "2", "3"}

func (w *walk) message() {
	stream := w.pick("stream", "nowhere", walkStreams...)
	switch rapid.IntRange(0, 10).Draw(w.t, "type") {
	case 0, 1, 2:
		key := w.pick("key", "", keys...)
		w.script = append(w.script, emit(indexOf(stream), key, `{"id":"`+key+`"}`, false))
		w.m.record(stream, key)
	case 3:
		stream = w.pick("cursor of", "details", "a", "b")
		w.say(abi.CallCheckpoint, `{"stream":%q,"cursor":{"n":%d}}`, stream, len(w.script))
		w.m.state(stream)
	case 4:
		failed := rapid.Bool().Draw(w.t, "failed")
		reason := map[bool]string{true: "stream_collection_failed", false: "user_disabled"}[failed]
		stream = w.pick("skipped", "nowhere", append([]string{""}, walkStreams...)...)
		if stream == "" {
			w.say(abi.CallSkip, `{"reason":%q}`, reason)
		} else {
			w.say(abi.CallSkip, `{"stream":%q,"reason":%q}`, stream, reason)
		}
		w.m.skip(stream, failed)
	case 5:
		stream, key := w.pick("gap in", "nowhere", "details", "details", "a"), w.pick("gap key", "1", keys...)
		parent := w.pick("gap parent", "nowhere", "", "a", "b")
		member := ""
		if parent != "" {
			member = fmt.Sprintf(`,"parent_stream":%q`, parent)
		}
		w.say(abi.CallGap, `{"stream":%q,"record_key":%q%s}`, stream, key, member)
		w.m.gap(stream, parent, key)
	case 6, 10:
		w.report()
	case 7:
		w.say(abi.CallInteract, `{"request_id":"q","kind":"approval","message":"May I?"}`)
		w.m.question()
	case 8:
		id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "assistance")
		if w.m.open[id] && !w.wrong("open twice") {
			return
		}
		w.say(abi.CallAssist, `{"assistance_request_id":%q,"progress_posture":"running","owner_action":"none","response_obligation":"none","message":"hm"}`, id)
		w.m.assist(id)
	default:
		id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "closing")
		if !w.m.open[id] && !w.wrong("closed before") {
			return
		}
		w.say(abi.CallAssistStatus, `{"assistance_request_id":%q,"status":"resolved"}`, id)
		w.m.assistStatus(id)
	}
}

func (w *walk) report() {
	stream := w.pick("report of", "covered", "details", "details", "details", "a")
	parent := w.pick("report for", "details", "a", "b")
	if w.m.has(stream, parent) && !w.wrong("again") {
		return
	}
	r := report{required: []string{}, hydrated: []string{}}
	for _, k := range keys {
		switch rapid.IntRange(0, 4).Draw(w.t, "key "+k) {
		case 0:
			r.required = append(r.required, k)
		case 1, 2:
			r.required, r.hydrated = append(r.required, k), append(r.hydrated, k)
		}
	}
	required, _ := json.Marshal(r.required)
	hydrated, _ := json.Marshal(r.hydrated)
	w.say(abi.CallCoverage, `{"reference_only":true,"state_stream":%q,"stream":%q,"required_keys":%s,"hydrated_keys":%s}`,
		parent, stream, required, hydrated)
	w.m.coverage(stream, parent, r)
}

// end draws a DONE, or none, and an exit that agrees with it, or not.
func (w *walk) end() sandbox.Exit {
	status := w.pick("done", "", abi.Succeeded, abi.Succeeded, abi.Failed, abi.Failed, abi.Failed, abi.Cancelled)
	if status != "" {
		d := walkDone{status: status, count: w.m.emitted}
		if w.wrong("miscounted") {
			d.count++
		}
		failure := ""
		if status == abi.Failed {
			d.certified = rapid.IntRange(0, 3).Draw(w.t, "certified") > 0
			failure = `,"error":{"message":"broken"}`
			if d.certified {
				failure = `,"error":{"message":"broken","code":"stream_collection_failed"}`
			}
		}
		w.say(abi.CallDone, `{"status":%q,"records_emitted":%d%s}`, status, d.count, failure)
		w.m.finish(d)
		if w.wrong("talks on") {
			w.message()
		}
	}
	clean := status == abi.Succeeded
	if w.wrong("wrong exit") {
		clean = !clean
	}
	trapped := !clean && rapid.IntRange(0, 3).Draw(w.t, "trapped") == 0
	w.m.exit(clean, trapped)
	switch {
	case trapped:
		return sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapUnreachable}
	case clean:
		return exited(0)
	}
	return exited(7)
}

func indexOf(stream string) int {
	for i, s := range walkStreams {
		if s == stream {
			return i
		}
	}
	return 99
}

// ended has what model and run are compared by.
type ended struct {
	Status, Reason, Subtype      string
	Emitted, Accepted, Dropped   int
	Staged                       int
	Committed, Withheld, Commits string
}

func (w *walk) compare(p *played) {
	m, r := w.m, p.result
	want := ended{
		m.status, m.reason, m.subtype, m.emitted, m.attempted, m.dropped, len(m.staged),
		strings.Join(m.committed, " "), strings.Join(m.withheld, " "), m.commitStatus(),
	}
	got := ended{
		Status: r.Status, Emitted: int(r.RecordsEmitted), Accepted: int(r.RecordsAccepted),
		Dropped: int(r.CheckpointSummary.BufferedRecordsDropped), Staged: r.CheckpointSummary.StateStreamsStaged,
		Withheld: strings.Join(r.CheckpointSummary.StateStreamsWithheld, " "), Commits: r.CheckpointSummary.CommitStatus,
	}
	if r.TerminalReason != nil {
		got.Reason = *r.TerminalReason
	}
	if r.Violation != nil {
		got.Subtype = string(r.Violation.Subtype)
	}
	var advanced []string
	for _, e := range p.events {
		if e.Type == "run.state_advanced" {
			advanced = append(advanced, string(e.Stream))
		}
	}
	got.Committed = strings.Join(advanced, " ")
	if diff := cmp.Diff(want, got); diff != "" {
		for _, c := range w.script {
			w.t.Logf("%d %q", c.call, c.payload)
		}
		w.t.Errorf("the model wants, the run got (-want +got):\n%s", diff)
	}
}
