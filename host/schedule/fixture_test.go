package schedule_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

const conn = store.ConnectionID("mail")

// A world is everything around a scheduler, in memory: a store, connections, and
// runs that go as a test says. It outlives schedulers.
type world struct {
	t  *testing.T
	mu sync.Mutex // guards all below
	// docs, runs and events are what is durable.
	docs   map[string]store.Document
	top    map[string]string // the newest record of a connection
	runs   []store.Run       // oldest first
	index  map[store.RunID]int
	byConn map[store.ConnectionID][]int
	events map[store.RunID][]store.Event
	leases map[store.ConnectionID]store.Lease
	wakes  map[store.RunID][]chan struct{}

	conns  map[store.ConnectionID]schedule.Connection
	look   func() // called when gates look at a connection
	play   func(schedule.Start) play
	starts []started
	done   []host.Tick
	ahead  time.Duration             // of the wall clock
	slow   time.Duration             // between looks at the clock; 0 is the default
	fail   func([]store.Write) error // of writes; nil: none fails

	// The power is cut at one commit: before it is durable, or before anybody hears
	// that it is. From then on cut is what everything fails with.
	commits, cutBefore, cutAfter int
	cut                          error
}

var errCutBefore, errCutAfter = errors.New("power is cut"), errors.New("power is cut after the commit")

// A play is how a run goes.
type play struct {
	refuse  *schedule.Refused
	lasts   time.Duration
	forever bool
	result  string // members of the result value; status succeeded when empty
	asks    string // status that its question ends with; "open" leaves it open
}

type started struct {
	At time.Time
	schedule.Start
	Run store.RunID
}

func newWorld(t *testing.T) *world {
	return &world{t: t, docs: map[string]store.Document{}, top: map[string]string{}, index: map[store.RunID]int{},
		byConn: map[store.ConnectionID][]int{}, events: map[store.RunID][]store.Event{},
		leases: map[store.ConnectionID]store.Lease{}, wakes: map[store.RunID][]chan struct{}{},
		conns: map[store.ConnectionID]schedule.Connection{conn: {ConnectorID: "https://example.test/mail"}},
		play:  func(schedule.Start) play { return play{lasts: time.Second} }}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock()
}

func (w *world) clock() time.Time { return time.Now().Add(w.ahead) }

func (w *world) scheduler() *schedule.Scheduler {
	s := schedule.New(schedule.Deps{Store: w, Starter: w, Source: w, Now: w.now, Done: func(t host.Tick) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done = append(w.done, t)
	}})
	if w.slow > 0 {
		s.Slow(w.slow)
	}
	return s
}

// start boots a scheduler; stop ends it as an orderly end of the host does.
func (w *world) start() (s *schedule.Scheduler, stop func()) {
	w.t.Helper()
	s = w.scheduler()
	w.must(s.Start(w.t.Context()))
	synctest.Wait()
	return s, func() { w.stop(s) }
}

func (w *world) stop(s *schedule.Scheduler) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Stop(ctx)
	synctest.Wait()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(s *schedule.Scheduler, q host.ScheduleDefinition) host.Schedule {
	w.t.Helper()
	out, _, err := s.Put(w.t.Context(), conn, q, nil)
	w.must(err)
	synctest.Wait()
	return out
}

func (w *world) get(s *schedule.Scheduler) host.Schedule {
	w.t.Helper()
	out, err := s.Schedule(w.t.Context(), conn)
	w.must(err)
	return out
}

func (w *world) history(s *schedule.Scheduler) []host.Tick {
	w.t.Helper()
	page, _, err := s.History(w.t.Context(), conn, "", 500)
	w.must(err)
	return page
}

// statuses are those of the history, oldest first, with the attempts of runs.
func (w *world) statuses(s *schedule.Scheduler) string {
	w.t.Helper()
	var out []string
	for _, t := range slices.Backward(w.history(s)) {
		out = append(out, fmt.Sprintf("%s/%d", t.Status, t.Attempt))
	}
	return strings.Join(out, " ")
}

func (w *world) begun() []started {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.starts)
}

func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func int64p(n int64) *int64 { return &n }

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// The store.

func key(kind store.Kind, id string) string { return string(kind) + "|" + id }

func (w *world) Write(_ context.Context, writes ...store.Write) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(writes)
}

func (w *world) write(writes []store.Write) error {
	if w.cut != nil {
		return w.cut
	}
	if w.fail != nil {
		if err := w.fail(writes); err != nil {
			return err
		}
	}
	w.commits++
	if w.commits == w.cutBefore {
		w.cut = errCutBefore
		return w.cut
	}
	for _, c := range writes {
		if at := w.docs[key(c.Kind, c.ID)].Revision; c.If != nil && *c.If != at {
			return &store.ConflictError{Kind: c.Kind, ID: c.ID, Revision: at}
		}
	}
	for _, c := range writes {
		k := key(c.Kind, c.ID)
		if c.Data == nil {
			delete(w.docs, k)
			continue
		}
		if prefix, _, ok := strings.Cut(c.ID, "/"); ok && c.ID > w.top[prefix+"/"] {
			w.top[prefix+"/"] = c.ID
		}
		w.docs[k] = store.Document{Kind: c.Kind, ID: c.ID, Revision: w.docs[k].Revision + 1, Data: slices.Clone(c.Data)}
	}
	if w.commits == w.cutAfter {
		w.cut = errCutAfter
		return w.cut
	}
	return nil
}

func (w *world) Document(_ context.Context, kind store.Kind, id string) (store.Document, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := w.docs[key(kind, id)]; ok {
		return d, nil
	}
	return store.Document{}, fmt.Errorf("%s: %w", kind, store.ErrNotFound)
}

func (w *world) Documents(_ context.Context, q store.DocumentQuery) ([]store.Document, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.Kind == store.Ticks && q.Descending && q.After == "" && q.Limit == 1 { // what every record asks for
		return w.newest(q.Prefix), nil
	}
	var out []store.Document
	for _, k := range slices.Sorted(maps.Keys(w.docs)) {
		d := w.docs[k]
		if d.Kind == q.Kind && strings.HasPrefix(d.ID, q.Prefix) &&
			(q.After == "" || (d.ID > q.After) != q.Descending && d.ID != q.After) {
			out = append(out, d)
		}
	}
	if q.Descending {
		slices.Reverse(out)
	}
	return out[:min(len(out), cmp.Or(q.Limit, 100))], nil
}

func (w *world) newest(prefix string) []store.Document {
	if id, ok := w.top[prefix]; ok {
		return []store.Document{w.docs[key(store.Ticks, id)]}
	}
	return nil
}

func (w *world) Leases(context.Context) ([]store.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.leases)), nil
}

func (w *world) Run(_ context.Context, id store.RunID) (store.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.find(id); i >= 0 {
		return w.runs[i], nil
	}
	return store.Run{}, store.ErrNotFound
}

func (w *world) find(id store.RunID) int {
	if i, ok := w.index[id]; ok {
		return i
	}
	return -1
}

func (w *world) Runs(_ context.Context, c store.ConnectionID, _ store.RunID, limit int) ([]store.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []store.Run
	for _, i := range slices.Backward(w.byConn[c]) {
		if len(out) == limit {
			break
		}
		out = append(out, w.runs[i])
	}
	return out, nil
}

func (w *world) Events(_ context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.events[id]
	all = all[min(int(from), len(all)):]
	return slices.Clone(all[:min(len(all), limit)]), nil
}

func (w *world) Watch(id store.RunID) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan struct{}, 1)
	w.wakes[id] = append(w.wakes[id], c)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.wakes, id)
	}
}

func (w *world) event(id store.RunID, typ, status string) {
	w.events[id] = append(w.events[id],
		store.Event{Type: typ, Status: status, RunID: id, Sequence: uint64(len(w.events[id])), OccurredAt: w.clock()})
	for _, c := range w.wakes[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Connections and runs.

func (w *world) ScheduledConnection(_ context.Context, id store.ConnectionID) (schedule.Connection, error) {
	w.mu.Lock()
	look := w.look
	c, ok := w.conns[id]
	w.mu.Unlock()
	if look != nil {
		look()
	}
	if !ok {
		return c, store.ErrNotFound
	}
	return c, nil
}

// set changes what the world says from now on.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) connection(f func(*schedule.Connection)) {
	w.set(func() { c := w.conns[conn]; f(&c); w.conns[conn] = c })
}

func (w *world) StartScheduled(_ context.Context, q schedule.Start) (store.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accept(q)
}

func (w *world) accept(q schedule.Start) (store.Run, error) {
	if l, ok := w.leases[q.Connection]; ok {
		return store.Run{}, &schedule.Refused{Code: "run_already_active", Message: string(l.RunID)}
	}
	p := w.play(q)
	if p.refuse != nil {
		return store.Run{}, p.refuse
	}
	r := w.row(q)
	if q.With != nil {
		if err := w.write(q.With(r)); err != nil && !errors.Is(err, errCutAfter) {
			return store.Run{}, fmt.Errorf("accept: %w", err)
		}
	}
	w.insert(r)
	w.leases[q.Connection] = store.Lease{ConnectionID: q.Connection, RunID: r.ID}
	w.starts = append(w.starts, started{w.clock(), q, r.ID})
	if w.cut != nil {
		return store.Run{}, w.cut
	}
	if !p.forever {
		time.AfterFunc(p.lasts/2, func() { w.asked(r.ID, p) })
		time.AfterFunc(p.lasts, func() { w.end(r.ID, p.result) })
	}
	return r, nil
}

func (w *world) insert(r store.Run) {
	w.index[r.ID] = len(w.runs)
	w.byConn[r.ConnectionID] = append(w.byConn[r.ConnectionID], len(w.runs))
	w.runs = append(w.runs, r)
}

func (w *world) row(q schedule.Start) store.Run {
	return store.Run{ID: store.RunID(fmt.Sprintf("run_%09d", len(w.runs)+1)), TraceID: "trc_1",
		ConnectorID: "https://example.test/mail", ConnectionID: q.Connection,
		Status: "active", StartedAt: w.clock(), TriggerKind: q.Trigger, Attempt: q.Attempt, RetryOf: q.RetryOf,
		Request: store.Request{CatchUp: q.CatchUp}}
}

func (w *world) asked(id store.RunID, p play) {
	if p.asks == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.event(id, "run.interaction_required", "started")
	if p.asks != "open" {
		w.event(id, "run.interaction_completed", p.asks)
	}
}

// end makes a run terminal, as its host or a reconciliation does.
func (w *world) end(id store.RunID, result string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut == nil {
		w.terminate(id, result)
	}
}

// reboot has the power back: runs that were active are over.
func (w *world) reboot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.cutBefore, w.cutAfter = nil, 0, 0
	for _, r := range w.runs {
		if r.Status == "active" {
			w.terminate(r.ID, failed("controller_restarted"))
		}
	}
}

func (w *world) terminate(id store.RunID, result string) {
	i := w.find(id)
	if i < 0 || w.runs[i].Status != "active" {
		return
	}
	status := "succeeded"
	if strings.Contains(result, `"terminal_reason"`) {
		status = "failed"
		if strings.Contains(result, "owner_cancelled") {
			status = "cancelled"
		}
	}
	r := &w.runs[i]
	at := w.clock()
	r.Status, r.FinishedAt = status, &at
	r.Result = json.RawMessage(`{"status":"` + status +
		`","records_emitted":7,"state":{"s":{"n":1}},"known_gaps":[],"checkpoint_summary":{"mode":"x"}` + result + `}`)
	delete(w.leases, r.ConnectionID)
	w.event(id, "run.finished", status)
}

func failed(reason string) string {
	return fmt.Sprintf(`,"terminal_reason":%q,"failure":{"reason":%q,"origin":"runtime","message":"It failed."}`, reason,
		reason)
}

func (w *world) RecordRefused(_ context.Context, q schedule.Start, refused *schedule.Refused) (store.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.row(q)
	if err := w.write(q.With(r)); err != nil {
		return store.Run{}, err
	}
	w.insert(r)
	w.terminate(r.ID, fmt.Sprintf(
		`,"terminal_reason":"launch_failed","failure":{"reason":"launch_failed","subtype":%q,"message":%q}`,
		refused.Code, refused.Message))
	return w.runs[len(w.runs)-1], nil
}

// manual starts a run by hand that goes as p says.
func (w *world) manual(p play) store.RunID {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.play
	w.play = func(schedule.Start) play { return p }
	r, err := w.accept(schedule.Start{Connection: conn, Trigger: "manual", Attempt: 1})
	w.play = old
	w.starts = slices.DeleteFunc(w.starts, func(s started) bool { return s.Run == r.ID })
	w.must(err)
	return r.ID
}

func code(err error) string {
	var e *host.Refusal
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
