//go:build unix

package resume

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/postgres"
)

// Numbers of a campaign. A host has a crowd of runs, and each strike at it hits those that are not over.
const (
	crowdOfEach = 4 // runs of each connector, as it is and resumable
	fewOfEach   = 1
	mostStrikes = 8 // at the hosts of one crowd, before they are left alone
)

// TestKill kills and stops hosts at random points while many of their runs work, wait, sleep and are being
// resumed. No question is lost or asked twice, a server is asked for everything once at most, what was stored is
// stored once, runs that outlive their host succeed, and no secret is on the disk.
func TestKill(t *testing.T) {
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, "kill -9, runs that wait, work and are resumed, on "+kind)
			dir := filepath.Join(t.TempDir(), "data")
			v.join(&member{url: open(t, dir), dir: dir})
			v.crowds(v.c.Length(20, 50))
			v.check()
		})
	}
}

// TestKillHosts is TestKill with hosts that share a database. They are also drained, and stopped with SIGSTOP for
// longer than their lease, while others live; answers and cancellations go to any of them. No connection has two
// runs, and nothing comes of a host that was removed.
func TestKillHosts(t *testing.T) {
	t.Parallel()
	v := newVictim(t, "hosts killed, stopped and drained, runs that wait, work and are taken over")
	server, dirs := postgres.Start(t, "fsync=off", "full_page_writes=off"), t.TempDir()
	database := server.Database(t)
	v.shared = server.Dir
	for n := range 3 {
		dir := filepath.Join(dirs, fmt.Sprint(n))
		v.join(&member{url: withData(database, dir) + "&lease=4s", dir: dir})
		if n == 0 {
			server.Exec(t, postgres.NameOf(database), postgres.History)
		}
	}
	v.crowds(v.c.Length(6, 50))
	v.check()
	if wrong := server.Exec(t, postgres.NameOf(database), postgres.Violations); wrong != "" {
		t.Errorf("history: %s", wrong)
	}
}

// A victimRun is a run of a victim, and what was seen of it.
type victimRun struct {
	guest, connection string
	resumable         bool

	id    store.RunID
	over  bool
	stops bool               // a host was told to cancel it
	open  *store.Interaction // the newest question
	sent  bool               // a host was given its answer
	taken bool               // a host took it
	given <-chan state       // what comes of the answer to a question; nil for none that is on its way
	to    string             // that question's interrupt
}

var answersOf = map[string]json.RawMessage{
	"clarification": json.RawMessage(`{"answer": "autumn"}`),
	"otp":           json.RawMessage(`{"code": "` + plantedCode + `"}`),
}

// crowds has crowds of runs come to their ends, until so many runs were struck.
func (v *victim) crowds(wanted int) {
	each := fewOfEach
	if campaign.Soak() {
		each = crowdOfEach
	}
	for n := 0; v.c.Runs() < wanted && !v.t.Failed(); n++ {
		if v.crowd(n, each); v.shared != "" {
			v.search(v.shared)
		}
		v.t.Logf("crowd %d: %d runs were struck so far", n+1, v.c.Runs())
	}
}

// crowd has the nth crowd of runs come to their ends, on hosts that are struck before.
func (v *victim) crowd(n, each int) {
	var all []*victimRun
	for _, guest := range slices.Concat(guests["Go"], guests["C"]) {
		if slices.Contains(guests["C"], guest) && !hasClang() {
			v.t.Log("SKIPPED: connectors in C, without clang and wasm-ld")
			continue
		}
		for as, made := range []func(*testing.T, string) string{connector, resumable} {
			module := made(v.t, guest)
			for i := range each {
				m := &victimRun{guest: guest, connection: fmt.Sprintf("%s%d-%d-%d", guest, as, n, i), resumable: as == 1}
				config, _ := json.Marshal(map[string]string{"server": v.witness.URL + "/" + m.connection})
				v.must(command{Install: module, Connect: m.connection, Config: string(config), Host: v.witness.URL})
				all = append(all, m)
			}
		}
	}
	v.c.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, m := range all {
		m.id = v.must(command{Start: m.connection}).Run.ID
		if m.resumable { // from its start on
			v.must(command{Until: m.id, Event: "run.started"})
		} else { // as soon as it waits
			v.sees(m, v.must(command{Await: m.id}))
		}
	}
	ways := v.ways()
	for n := 0; n < mostStrikes && len(unfinished(all)) > 0; n++ {
		v.lives(all)
		v.strike(ways[n%len(ways)])
		for _, m := range all {
			v.collect(m, false)
		}
		v.mend()
		v.look(all)
	}
	v.restore()
	for _, m := range unfinished(all) {
		v.finish(m)
	}
}

// lives has hosts go on for a while and answer some of their questions.
func (v *victim) lives(all []*victimRun) {
	v.pause(300 * time.Millisecond)
	for range v.c.IntN(4) { // none is a host that is struck while it begins
		v.look(all)
		for _, m := range all {
			if !m.over && v.c.IntN(100) == 0 {
				m.stops = true
				v.pick().p.send(command{Cancel: m.id}) // it may be over by now
			}
			if m.open != nil && !m.over && !m.taken && m.given == nil && v.c.IntN(6) == 0 {
				m.sent, m.to = true, m.open.Interrupt
				m.given = v.pick().p.send(command{Answer: m.id, Value: answersOf[m.open.Kind]})
			}
		}
		v.pause(500 * time.Millisecond)
	}
}

// collect notes what came of an answer, if that is known, or once it is.
func (v *victim) collect(m *victimRun, wait bool) {
	var st state
	ok := false
	switch {
	case m.given == nil:
		return
	case wait:
		st, ok = <-m.given
	default:
		select {
		case st, ok = <-m.given:
		default:
			return
		}
	}
	m.taken, m.given = m.taken || ok && st.Err == "" && m.to == m.open.Interrupt, nil
}

// finish has a run come to its end, on hosts that are left alone.
func (v *victim) finish(m *victimRun) {
	v.collect(m, true)
	for tries := 0; ; tries++ {
		not := ""
		if m.taken {
			not = m.open.Interrupt
		}
		if v.sees(m, v.must(command{Await: m.id, Not: not})); m.over {
			return
		}
		if tries == 10 {
			v.t.Fatalf("%s does not take an answer to %+v", m.connection, m.open)
		}
		st := v.do(command{Answer: m.id, Value: answersOf[m.open.Kind]}) // its host may end before it says that it took it
		m.sent, m.taken = true, st.Err == ""
	}
}

func unfinished(all []*victimRun) []*victimRun {
	return slices.DeleteFunc(slices.Clone(all), func(m *victimRun) bool { return m.over })
}

// look looks at all runs that are not over yet.
func (v *victim) look(all []*victimRun) {
	of, ids := unfinished(all), []store.RunID{} // not nil: a look at no run is one too
	for _, m := range of {
		v.collect(m, false)
		ids = append(ids, m.id)
	}
	for i, st := range v.must(command{Look: ids}).All {
		v.sees(of[i], st)
	}
}

// sees compares what a run has come to with what was seen of it before.
func (v *victim) sees(m *victimRun, st state) {
	if m.open != nil && !m.sent && !m.stops && (st.Open == nil || st.Open.Interrupt != m.open.Interrupt) {
		v.c.Lost(1, "%s: question %+v became %+v, and the run is %s: %s",
			m.connection, m.open, st.Open, st.Run.Status, st.Run.Result)
	}
	switch {
	case st.Run.Status != "active":
		v.ended(m, st)
	case st.Open == nil:
	case m.open == nil || st.Open.Interrupt != m.open.Interrupt:
		v.c.Checked(1)
		if st.Open.Journal == 0 || st.Open.HostBound != "" {
			v.c.Torn("%s: the question ends with its host: %+v", m.connection, st.Open)
		}
		m.open, m.sent, m.taken = st.Open, false, false
	case m.taken:
		v.c.Torn("%s: %+v is asked again, and was answered", m.connection, st.Open)
	case !st.Open.OpenedAt.Equal(m.open.OpenedAt):
		v.c.Torn("%s: %+v became %+v", m.connection, m.open, st.Open)
	}
}

// ended judges how a run ended. One that is not resumable may have gone on just before its host was struck, and so may
// one that was being cancelled.
func (v *victim) ended(m *victimRun, st state) {
	m.over = true
	whole := st.Run.Status == "succeeded" && st.Events["run.cancel_requested"] == 0
	cut := reasonOf(st.Run) == "controller_restarted" && (!m.resumable || m.stops)
	if !whole && !cut && !(m.stops && st.Run.Status == "cancelled") {
		v.c.Torn("%s ended %s: %s", m.connection, st.Run.Status, st.Run.Result)
	}
	if asked := st.Events["interrupt.requested"]; asked > 2 || whole && asked != 2 {
		v.c.Torn("%s asked %d times", m.connection, asked)
	}
	ends := st.Events["run.completed"] + st.Events["run.failed"] + st.Events["run.cancelled"]
	if ends != 1 || len(st.Pieces) > 0 {
		v.c.Torn("%s ended %d times, and left %d pieces of its journal", m.connection, ends, len(st.Pieces))
	}
	v.done = append(v.done, func(st store.Store) { v.witness.check(v.t, st, m.connection, paths[m.guest], whole) })
}

func (v *victim) outlives(st state) {
	v.t.Helper()
	if st.Open == nil {
		v.t.Fatalf("no question: %s %s", st.Run.Status, st.Run.Result)
	}
	if st.Open.Journal == 0 || st.Open.HostBound != "" {
		v.t.Fatalf("the question ends with its host: %+v", st.Open)
	}
}

func reasonOf(r store.Run) string {
	var result struct {
		Reason string `json:"terminal_reason"`
	}
	_ = json.Unmarshal(r.Result, &result) // none of a run that is not over
	return result.Reason
}

// check stops all hosts and looks at everything that is stored.
func (v *victim) check() {
	v.stop()
	h, err := app.Open(v.t.Context(), app.Options{Store: v.members[0].url, NoSandbox: true})
	if err != nil {
		v.t.Fatal(err)
	}
	defer h.Close()
	if err := h.Store.Verify(v.t.Context()); err != nil {
		v.t.Error(err)
	}
	for _, check := range v.done {
		check(h.Store)
		v.c.Checked(1)
	}
}
