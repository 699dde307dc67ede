//go:build unix

package resume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/campaign"
)

// Numbers of a campaign. A host has a crowd of runs, and each of its kills strikes those that are not over.
const (
	crowdOfEach = 4 // runs of each connector, as it is and resumable
	fewOfEach   = 1
	mostEnds    = 8 // ends of the hosts of one crowd, before one that lasts
)

// TestKill kills and stops hosts at random points while many of their runs work, wait, sleep and are being
// resumed. No question is lost or asked twice, a server is asked for everything once at most, what was stored is
// stored once, runs that outlive their host succeed, and no secret is on the disk.
func TestKill(t *testing.T) {
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := campaign.New(t, "kill -9, runs that wait, work and are resumed, on "+kind)
			dir := filepath.Join(t.TempDir(), "data")
			v := &victim{t: t, c: c, dir: dir, url: open(t, dir), witness: newWitness(t)}
			v.witness.slow = true
			each := fewOfEach
			if campaign.Soak() {
				each = crowdOfEach
			}
			for wanted, n := c.Length(20, 50), 0; c.Runs() < wanted && !t.Failed(); n++ {
				v.crowd(n, each)
				t.Logf("crowd %d: %d runs were struck so far", n+1, c.Runs())
			}
			v.end()
		})
	}
}

// A victim is a host that is killed.
type victim struct {
	t       *testing.T
	c       *campaign.Campaign
	dir     string
	url     string
	witness *witness
	done    []func(store.Store) // checks of what is stored
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
	given <-chan state       // what came of the answer to a question, in the host that has not ended yet
	to    string             // that question's interrupt
}

var answersOf = map[string]json.RawMessage{
	"clarification": json.RawMessage(`{"answer": "autumn"}`),
	"otp":           json.RawMessage(`{"code": "` + plantedCode + `"}`),
}

// begin begins a host, every other one of which has runs that wait sleep within a second.
func (v *victim) begin() *process {
	if v.c.IntN(2) == 0 {
		return begin(v.t, v.url, sleeps+"=1")
	}
	return begin(v.t, v.url)
}

// pause waits for a random time.
func (v *victim) pause(most time.Duration) { <-time.After(time.Duration(v.c.Int64N(int64(most)))) }

// crowd has the nth crowd of runs come to their ends, on hosts that end before.
func (v *victim) crowd(n, each int) {
	p := v.begin()
	var all []*victimRun
	for _, guest := range slices.Concat(guests["Go"], guests["C"]) {
		if slices.Contains(guests["C"], guest) && !hasClang() {
			v.t.Log("SKIPPED: connectors in C, without clang and wasm-ld")
			continue
		}
		for as, made := range []func(*testing.T, string) string{connector, resumable} {
			p.must(command{Install: made(v.t, guest)})
			for i := range each {
				m := &victimRun{guest: guest, connection: fmt.Sprintf("%s%d-%d-%d", guest, as, n, i), resumable: as == 1}
				config, _ := json.Marshal(map[string]string{"server": v.witness.URL + "/" + m.connection})
				p.must(command{Connect: m.connection, Config: string(config), Host: v.witness.URL})
				all = append(all, m)
			}
		}
	}
	v.c.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, m := range all {
		m.id = p.must(command{Start: m.connection}).Run.ID
		if m.resumable { // from its start on
			p.must(command{Until: m.id, Event: "run.started"})
		} else { // as soon as it waits
			v.sees(m, p.must(command{Await: m.id}))
		}
	}
	for n := 0; n < mostEnds && len(unfinished(all)) > 0; n++ {
		v.lives(p, all)
		p = v.next(p, all)
	}
	for _, m := range unfinished(all) {
		for !m.over {
			not := ""
			if m.taken {
				not = m.open.Interrupt
			}
			if v.sees(m, p.must(command{Await: m.id, Not: not})); !m.over {
				p.must(command{Answer: m.id, Value: answersOf[m.open.Kind]})
				m.sent, m.taken = true, true
			}
		}
	}
	p.stop()
	v.search()
}

// lives has a host go on for a while and answers some of its questions.
func (v *victim) lives(p *process, all []*victimRun) {
	v.pause(300 * time.Millisecond)
	for range v.c.IntN(4) { // none is a host that ends while it begins
		v.look(p, all)
		for _, m := range all {
			if !m.over && v.c.IntN(100) == 0 {
				m.stops = true
				p.do(command{Cancel: m.id}) // it may be over by now
			}
			if m.open != nil && !m.over && !m.taken && m.given == nil && v.c.IntN(6) == 0 {
				m.sent, m.to = true, m.open.Interrupt
				m.given = p.send(command{Answer: m.id, Value: answersOf[m.open.Kind]})
			}
		}
		v.pause(500 * time.Millisecond)
	}
}

// next ends a host, one way or another, and begins the next.
func (v *victim) next(p *process, all []*victimRun) *process {
	if v.c.IntN(4) == 0 {
		p.stop()
	} else {
		p.kill()
	}
	v.search()
	for _, m := range all {
		if m.given != nil {
			st, ok := <-m.given
			m.taken, m.given = m.taken || ok && st.Err == "" && m.to == m.open.Interrupt, nil
		}
	}
	p = v.begin()
	v.c.Cycle()
	v.c.Struck(v.look(p, all))
	return p
}

func unfinished(all []*victimRun) []*victimRun {
	return slices.DeleteFunc(slices.Clone(all), func(m *victimRun) bool { return m.over })
}

// look looks at all runs of a host that are not over yet. It returns how many the end of the host before struck.
func (v *victim) look(p *process, all []*victimRun) (struck int) {
	of, ids := unfinished(all), []store.RunID{} // not nil: a look at no run is one too
	for _, m := range of {
		ids = append(ids, m.id)
	}
	for i, st := range p.must(command{Look: ids}).All {
		if v.sees(of[i], st); !of[i].over || reasonOf(st.Run) == "controller_restarted" {
			struck++
		}
	}
	return struck
}

// sees compares what a run has come to with what was seen of it before.
func (v *victim) sees(m *victimRun, st state) {
	if m.open != nil && !m.sent && !m.stops && (st.Open == nil || st.Open.Interrupt != m.open.Interrupt) {
		v.c.Lost(1, "%s: question %+v became %+v, and the run is %s: %s", m.connection, m.open, st.Open,
			st.Run.Status, st.Run.Result)
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

// ended judges how a run ended. One that is not resumable may have gone on just before its host was killed, and so may
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
	if ends := st.Events["run.completed"] + st.Events["run.failed"] + st.Events["run.cancelled"]; ends != 1 ||
		len(st.Pieces) > 0 {
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

// search looks for secrets in every file of the data directory.
func (v *victim) search() {
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "cache") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, secret := range []string{plantedCookie, plantedCode, plantedBody} {
			if bytes.Contains(b, []byte(secret)) {
				v.c.Torn("%s has %s", path, secret)
			}
		}
		return nil
	})
	if err != nil {
		v.t.Fatal(err)
	}
}

// end looks at everything that is stored.
func (v *victim) end() {
	v.search()
	h, err := app.Open(v.t.Context(), app.Options{Store: v.url, NoSandbox: true})
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
