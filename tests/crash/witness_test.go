package crash

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/tests/crash/page"
)

// A witness remembers what was announced and compares it with what later
// commands find.
type witness struct {
	p         program
	committed int                // page of the cursor at the last check
	announced map[string][]event // by run
	reach     int                // page that a run may have come to
	order     []string           // runs in the order in which they announced something
	ended     map[string]string  // status of the runs that were checked
	acked     map[string]bool    // keys of items in batches that were announced
}

func newWitness(p program) *witness {
	return &witness{p: p, announced: map[string][]event{}, ended: map[string]string{}, acked: map[string]bool{}}
}

// saw records the events of one run.
func (w *witness) saw(events []event) {
	w.p.t.Helper()
	if len(events) == 0 {
		return
	}
	id := events[0].RunID
	if _, again := w.announced[id]; again {
		w.p.t.Errorf("two runs have the id %s", id)
	}
	w.announced[id] = events
	w.order = append(w.order, id)
	for _, key := range keys(events) {
		w.acked[key] = true
	}
}

// keys returns the keys of items in the batches that events announce: the connector
// emits them in a fixed order.
func keys(events []event) []string {
	from, accepted := startOf(events)
	var out []string
	for p := from + 1; len(out) < accepted; p++ {
		for _, it := range page.Items(p) {
			out = append(out, it.ID)
		}
	}
	return out[:accepted]
}

// startOf returns the page from which the connector continued, and how many records of
// items were announced.
func startOf(events []event) (from, accepted int) {
	for _, e := range events {
		switch {
		case e.Type == "run.progress_reported":
			from = e.Data.Count
		case e.Type == "run.batch_ingested" && e.Data.Stream == "items":
			accepted += e.Data.Accepted
		}
	}
	return from, accepted
}

// start starts a run that collects all pages up to until.
func (w *witness) start(until int, args ...string) *live {
	w.p.t.Helper()
	w.reach = max(w.reach, until)
	return w.p.start(w.p.run(until, args...))
}

// undisturbed runs such a run to its success.
func (w *witness) undisturbed(until int, args ...string) []event {
	w.p.t.Helper()
	return w.succeed(w.start(until, args...))
}

// succeed waits for the end of a run that succeeds.
func (w *witness) succeed(l *live) []event {
	w.p.t.Helper()
	events := l.rest()
	if err := l.cmd.Wait(); err != nil {
		w.p.t.Fatalf("an undisturbed run: %v\n%s%s", err, l.out.String(), l.errs.String())
	}
	orphansGone(w.p.t)
	w.saw(events)
	return events
}

// A runLine is what sluice runs and sluice show print of a run.
type runLine struct {
	ID     string  `json:"run_id"`
	Status string  `json:"status"`
	Reason *string `json:"terminal_reason"`
}

func (r runLine) ending() string {
	if r.Reason == nil {
		return r.Status
	}
	return r.Status + " " + *r.Reason
}

// check asks the program for everything and compares. Runs are checked in the order in
// which they happened, because each continues where the ones before it left the cursor.
func (w *witness) check() {
	t := w.p.t
	t.Helper()
	stored := one[[]runLine](w.p, "runs", "pages", "--limit", "100000")
	slices.Reverse(stored)
	for _, r := range stored {
		if w.ended[r.ID] == "" {
			w.checkRun(r)
		} else if w.ended[r.ID] != r.ending() {
			t.Errorf("run %s was %s and is %s", r.ID, w.ended[r.ID], r.ending())
		}
	}
	for _, id := range w.order {
		if w.ended[id] == "" {
			t.Errorf("run %s announced events and is not listed", id)
		}
	}
	w.checkState()
	w.checkItems()
	w.checkLatest()
	w.checkHealth()
	w.checkFiles()
}

// checkRun checks how a run ended, and that its timeline is whole and has everything
// that was announced.
func (w *witness) checkRun(r runLine) {
	t := w.p.t
	t.Helper()
	w.ended[r.ID] = r.ending()
	if s := one[runLine](w.p, "show", r.ID); s.ending() != r.ending() {
		t.Errorf("runs says %s ended %s, show says %s", r.ID, r.ending(), s.ending())
	}
	events := lines[event](w.p, "events", r.ID)
	for i, e := range events {
		if e.Sequence != i {
			t.Errorf("run %s: event %d has sequence %d", r.ID, i, e.Sequence)
		}
		if terminal := e.Type == "run.completed" || e.Type == "run.failed"; terminal != (i == len(events)-1) {
			t.Errorf("run %s: %s is event %d of %d", r.ID, e.Type, i, len(events))
		}
	}
	announced := w.announced[r.ID]
	for i, e := range announced {
		if i >= len(events) {
			t.Fatalf("run %s: %d events were announced, %d are stored", r.ID, len(announced), len(events))
		}
		if diff := cmp.Diff(e.raw, events[i].raw); diff != "" {
			t.Errorf("run %s: event %d is not stored as announced (-announced +stored):\n%s", r.ID, i, diff)
		}
	}
	w.checkEnd(r, events)
	if from, _ := startOf(events); slices.ContainsFunc(events,
		func(e event) bool { return e.Type == "run.progress_reported" }) && from != w.committed {
		t.Errorf("run %s went on from page %d, %d was committed", r.ID, from, w.committed)
	}
	for _, e := range events {
		if e.Type == "run.state_advanced" {
			w.committed = e.Data.Cursor.Page
		}
	}
}

// checkEnd: a run either committed its end before the kill or was cut off; there is
// nothing in between.
func (w *witness) checkEnd(r runLine, events []event) {
	t := w.p.t
	t.Helper()
	if len(events) == 0 {
		t.Fatalf("run %s has no events", r.ID)
	}
	last, advanced := events[len(events)-1], 0
	for _, e := range events {
		if e.Type == "run.state_advanced" {
			advanced++
		}
	}
	switch last.Type {
	case "run.completed":
		if r.ending() != "succeeded" {
			t.Errorf("run %s completed and is %s", r.ID, r.ending())
		}
	case "run.failed":
		if r.ending() != "failed controller_restarted" || last.Data.Reason != "controller_restarted" {
			t.Errorf("run %s was cut off and is %s, its last event says %s", r.ID, r.ending(), last.Data.Reason)
		}
		if advanced > 0 {
			t.Errorf("run %s was cut off and committed %d cursors", r.ID, advanced)
		}
	}
}

// checkState: both cursors are the last committed ones.
func (w *witness) checkState() {
	w.p.t.Helper()
	type state struct {
		Streams map[string]struct {
			Cursor cursor `json:"cursor"`
		} `json:"streams"`
	}
	for stream, s := range one[state](w.p, "state", "show", "pages").Streams {
		if s.Cursor.Page != w.committed {
			w.p.t.Errorf("the cursor of %s is at page %d; events say %d", stream, s.Cursor.Page, w.committed)
		}
	}
}

// A record is a line of sluice records.
type record struct {
	Key     string    `json:"key"`
	Data    page.Item `json:"data"`
	Version int       `json:"version"`
	RunID   string    `json:"runId"`
}

func (w *witness) records(stream string) []record {
	w.p.t.Helper()
	return lines[record](w.p, "records", "pages", stream, "--limit", "0")
}

// checkItems: every key that was acknowledged or lies before the cursor is stored once,
// as it was emitted, and nothing is stored that no run could have emitted. A record of
// items never changes, so its versions have no gaps.
func (w *witness) checkItems() {
	t := w.p.t
	t.Helper()
	want := map[string]page.Item{}
	for p := 1; p <= w.reach; p++ {
		for _, it := range page.Items(p) {
			want[it.ID] = it
		}
	}
	seen := map[string]bool{}
	for i, r := range w.records("items") {
		if seen[r.Key] {
			t.Errorf("%s is stored twice", r.Key)
		}
		seen[r.Key] = true
		if diff := cmp.Diff(want[r.Key], r.Data); diff != "" {
			t.Errorf("%s (-emitted +stored):\n%s", r.Key, diff)
		}
		if r.Version != i+1 {
			t.Errorf("%s has version %d, it is record %d", r.Key, r.Version, i+1)
		}
	}
	for key := range w.acked {
		if !seen[key] {
			t.Errorf("%s was acknowledged and is not stored", key)
		}
	}
	for key, it := range want {
		if it.Page <= w.committed && !seen[key] {
			t.Errorf("%s lies before the cursor and is not stored", key)
		}
	}
}

// checkLatest: the one record of the stream latest is at least as new as the last
// announced batch of it. A later run continues from the cursor, which may be older, and
// may have stored a batch that it was killed too early to announce: then latest is at
// least the first page of that run.
func (w *witness) checkLatest() {
	t := w.p.t
	t.Helper()
	all := w.records("latest")
	if len(all) != 1 || all[0].Key != page.Latest {
		t.Fatalf("latest holds %v", all)
	}
	least := 0
	for _, id := range w.order {
		from, n := 0, 0
		for _, e := range w.announced[id] {
			switch {
			case e.Type == "run.progress_reported":
				from = e.Data.Count
			case e.Type == "run.batch_ingested" && e.Data.Stream == "latest":
				n += e.Data.Accepted
			}
		}
		if n > 0 {
			least = from + n
		} else {
			least = min(least, from+1)
		}
	}
	if got := all[0].Data.Page; got < least {
		t.Errorf("latest is at page %d; %d was acknowledged", got, least)
	}
}

// checkFiles: the records hold what they were emitted with, all of it can be read, and
// nothing lies beside it. The commands before this one have tidied the store.
func (w *witness) checkFiles() {
	t := w.p.t
	t.Helper()
	if !w.p.filed {
		return
	}
	want := map[string]string{}
	for _, r := range w.records("items") {
		if strings.HasSuffix(r.Key, "-000") {
			want["items "+r.Key] = page.Small(r.Data.Page)
		}
	}
	for _, r := range w.records("latest") {
		want["latest "+r.Key] = page.Long(r.Data.Page)
	}
	type held struct{ Stream, Key, SavedAs string }
	for _, f := range lines[held](w.p, "files", "pages", "--to", t.TempDir()) {
		got, err := os.ReadFile(f.SavedAs)
		if name := f.Stream + " " + f.Key; err != nil || string(got) != want[name] {
			t.Errorf("%s holds %d bytes that begin %.20q, want %.20q: %v", name, len(got), got, want[name], err)
		} else {
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("%s holds no file", name)
	}
	if lie, err := os.ReadDir(filepath.Join(w.p.data, "files")); err != nil || len(lie) != 1 {
		t.Errorf("%d long files lie in the store, %v; one is held", len(lie), err)
	}
}

// checkHealth: nothing is bad, and the whole store was recounted.
func (w *witness) checkHealth() {
	t := w.p.t
	t.Helper()
	type finding struct{ Check, State, Detail string }
	states := map[string]string{}
	for _, f := range one[[]finding](w.p, "doctor", "--deep") {
		states[f.Check] = f.State
		if f.State == "bad" {
			t.Errorf("doctor: %s: %s", f.Check, f.Detail)
		}
	}
	if states["store"] != "ok" || states["recount"] != "ok" || states["runs"] != "" {
		t.Errorf("doctor: store %q, recount %q, runs %q", states["store"], states["recount"], states["runs"])
	}
}

// complete runs undisturbed past every page of which something is stored, and compares everything; then
// come a run with nothing to do, and one from the beginning, which finds every record
// unchanged.
func (w *witness) complete() {
	t := w.p.t
	t.Helper()
	until, n, stored := 0, 0, len(w.records("items"))
	for until < w.committed+pagesPerRun || n < stored {
		until++
		n += len(page.Items(until))
	}
	w.undisturbed(until)
	w.check()
	items, latest := w.records("items"), w.records("latest")
	if w.committed != until || len(items) != n {
		t.Errorf("after an undisturbed run %d of %d records are stored, the cursor is at page %d of %d", len(items),
			n, w.committed, until)
	}
	if from, accepted := startOf(w.undisturbed(until)); from != until || accepted != 0 {
		t.Errorf("a run with nothing to do went on from page %d of %d and stored %d", from, until, accepted)
	}
	if diff := cmp.Diff(latest, w.records("latest")); diff != "" {
		t.Errorf("a run with nothing to do changed latest:\n%s", diff)
	}
	if from, accepted := startOf(w.undisturbed(until, "--reset-state")); from != 0 || accepted != n {
		t.Errorf("a run from the beginning went on from page %d and emitted %d of %d", from, accepted, n)
	}
	if diff := cmp.Diff(items, w.records("items")); diff != "" {
		t.Errorf("a run from the beginning changed items:\n%s", diff)
	}
	t.Logf("complete: %d records up to page %d", n, until)
}
