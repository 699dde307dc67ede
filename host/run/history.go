package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A History says how the journal of a run is kept: what its guest was answered, sealed, so
// that a run that waits for its owner outlives its host.
type History struct {
	// Key seals the journal: 32 bytes that only this run has.
	Key []byte
	// Bound says why a run like this does not outlive its host, "" where it may.
	Bound string
	// Request is what the host needs to prepare the run again. It is sealed.
	Request []byte
	// MaxBytes bounds the journal, MaxEntries what is in it; 0 are the defaults.
	MaxBytes, MaxEntries int
	// Awake is how long a run waits before it is put down; 0 is for ever.
	Awake time.Duration
	// Resumable says that the connector goes on after its host ended also when it did not wait.
	// Everything that it is answered is then durable with what follows from it, and each request
	// before it is sent.
	Resumable bool
	// Resume continues a run that was put down; nil for one that begins.
	Resume *Suspended
}

// Defaults of History.
const (
	DefaultHistoryBytes   = 64 << 20
	DefaultHistoryEntries = 1_000_000
)

// A Suspended run is active, and nobody performs it.
type Suspended struct {
	Run      store.Run
	Lease    store.Lease
	Open     store.Interaction // its question; without an ID it does not wait for its owner
	Question Question          // as the owner's channel gets it; Timeout is not set
	Request  []byte            // History.Request
	Cause    string            // why it goes on, for run.resumed
	mark     mark
}

// ErrSuspended: the run was put down, and is to be resumed from its journal. It has no result.
var ErrSuspended = errors.New("the run waits, and nobody performs it")

// A mark is what is known of a run besides its calls when it asks, or begins.
type mark struct {
	ID       string   `json:"id,omitempty"`
	Question Question `json:"question"`
	Request  []byte   `json:"request"`
	Plan     frozen   `json:"plan"`
	Last     bool     `json:"last,omitempty"`
	Spent    spent    `json:"spent"`
	Held     []byte   `json:"held,omitempty"`
	Bytes    int      `json:"bytes"` // of the journal
	Entries  int      `json:"entries"`
}

// spent is what a run has used of its budgets.
type spent struct {
	Started                                     time.Time
	Work, Owner, Rate, Compute, Activity, Pause time.Duration
}

// A made commit is what the journal has of one.
type made struct {
	Events uint64 `json:"events"` // of the run, up to its end
	Spent  spent  `json:"spent"`
}

// Suspension reads what there is to know of a run that nobody performs; the error says why it
// cannot be resumed.
func Suspension(ctx context.Context, st store.Store, l store.Lease, key []byte) (*Suspended, error) {
	rec, err := st.Run(ctx, l.RunID)
	if err != nil {
		return nil, err
	}
	open, err := st.Pending(ctx, l.RunID)
	if err != nil {
		return nil, err
	}
	if !Outlives(rec, open) {
		return nil, errors.New("the run does not outlive its host")
	}
	s, err := newSealer(key, l.RunID)
	if err != nil {
		return nil, err
	}
	out, n, kind := &Suspended{Run: rec, Lease: l}, uint64(0), byte(entryBegin)
	if len(open) > 0 {
		out.Open, n, kind = open[0], open[0].Journal-1, entryMark
	}
	piece, err := st.Journal(ctx, l.RunID, n)
	if err != nil {
		return nil, err
	}
	_, entries, err := s.open(n, piece)
	if err != nil {
		return nil, err
	}
	e, _, err := parseEntry(entries)
	if err == nil && (e.kind != kind || json.Unmarshal(e.data, &out.mark) != nil || out.mark.ID != out.Open.ID) {
		err = errHistory
	}
	out.Question, out.Request = out.mark.Question, out.mark.Request
	return out, err
}

// Outlives reports whether a run can be resumed, whoever performs it now: it is resumable, or
// waits for an answer with which it can go on.
func Outlives(rec store.Run, open []store.Interaction) bool {
	if rec.Status != "active" || len(open) == 0 {
		return rec.Status == "active" && rec.Resumable
	}
	return rec.Phase == "waiting" && len(open) == 1 && open[0].Journal > 0
}

// history is the journal of a run: written while it goes on, and read while it is resumed.
type history struct {
	*parts
	sealer    *sealer
	bound     string // why the run does not outlive its host, "" when it does
	resumable bool

	buffer  []byte // entries that are in no piece
	ready   []store.JournalPiece
	pieces  uint64 // sealed
	last    hash16
	bytes   int
	entries int

	player *player        // nil unless the run is being resumed
	calls  int            // that were played
	cancel *CancelRequest // that came meanwhile; nil for none
	asked  string         // the question that was marked last
	going  bool           // it is being put down
	frozen frozen         // what the plan was made of

	// Of a resumable run.
	events  uint64    // that were submitted
	held    []byte    // what the network held after its newest call
	sure    bool      // that it is resumable no more is durable, where that is so
	leaving time.Time // since when it is to be put down once a request is answered; zero for not
	marked  bool      // the next commit asks the question of a mark
	waits   *mark     // of the open question, until it is asked on
}

// newHistory returns the journal of a run; a run without one has a bound.
func newHistory(all *parts, h *History) *history {
	out := &history{parts: all, bound: "its host does not keep what it was answered", frozen: all.plan.freeze(), sure: true}
	if h == nil {
		return out
	}
	if out.bound = h.Bound; out.bound != "" {
		return out
	}
	var err error
	if out.sealer, err = newSealer(h.Key, all.id); err != nil {
		out.bound = err.Error()
		return out
	}
	out.resumable = h.Resumable
	if r := h.Resume; r != nil {
		out.player = &player{sealer: out.sealer, pieces: r.Open.Journal, load: func(ctx context.Context, n uint64) ([]byte, error) {
			return all.deps.Store.Journal(ctx, all.id, n)
		}}
		if out.resumable {
			out.player.pieces = 0
		}
	}
	return out
}

// replaying reports whether the guest is answered from the journal.
func (h *history) replaying() bool { return h.player != nil }

// keeps reports whether there is a journal to write.
func (h *history) keeps() bool { return h.bound == "" && h.player == nil }

// write appends an entry, unless that takes the journal over its bounds.
func (h *history) write(e entry) {
	if !h.keeps() {
		return
	}
	most, entries := DefaultHistoryBytes, DefaultHistoryEntries
	if d := h.deps.History; d.MaxBytes > 0 {
		most = d.MaxBytes
	}
	if d := h.deps.History; d.MaxEntries > 0 {
		entries = d.MaxEntries
	}
	before := len(h.buffer)
	h.buffer = e.append(h.buffer)
	h.bytes, h.entries = h.bytes+len(h.buffer)-before, h.entries+1
	if h.bytes > most || h.entries > entries {
		h.give("what it was answered is more than the host keeps of a run")
		return
	}
	if len(h.buffer) >= pieceEntries {
		h.cut()
	}
	if len(h.ready) >= piecesAtOnce && !h.resumable {
		h.commits.submitNow(&store.Commit{}, nil) // which takes them
	}
}

// piecesAtOnce is how many pieces wait for a commit of the run before they get one of their own.
const piecesAtOnce = 4

// give gives the journal up, for a reason that the owner is told of.
func (h *history) give(why string) {
	h.bound, h.buffer, h.ready = why, nil, nil
	h.forgo()
}

// forgo makes a run that is resumable one that is not: it does from now on what its journal has
// not, or is over.
func (h *history) forgo() {
	if h.resumable {
		h.resumable, h.sure = false, false
		h.loop.resumable(false)
		h.commits.submitNow(&store.Commit{Run: h.loop.row()}, nil)
	}
}

// cut seals what was written, in pieces.
func (h *history) cut() {
	for len(h.buffer) > 0 {
		n := min(len(h.buffer), store.MaxJournalPiece-1024)
		h.seal(h.buffer[:n])
		h.buffer = h.buffer[n:]
	}
	h.buffer = nil
}

func (h *history) seal(entries []byte) {
	piece := h.sealer.seal(h.pieces, h.last, entries)
	h.ready = append(h.ready, store.JournalPiece{N: h.pieces, Data: piece})
	h.pieces, h.last = h.pieces+1, tagOf(piece)
}

// take is what goes with a commit. Of a resumable run it is everything: what a commit makes
// durable is never without what led to it, nor the other way round.
func (h *history) take(c *store.Commit) []store.JournalPiece {
	if h.resumable && h.keeps() {
		if h.pieces == 0 {
			h.begin(c)
		}
		if facts := isFact(c) || h.marked; facts || len(c.Events) > 0 {
			h.wrote(facts, len(c.Events))
		}
		h.cut()
	}
	out := h.ready
	h.ready, h.marked = nil, false
	return out
}

// begin writes what the run was started with, with the commit of that.
func (h *history) begin(c *store.Commit) {
	b, err := json.Marshal(mark{Request: h.deps.History.Request, Plan: h.frozen})
	if err != nil || len(b) > store.MaxJournalPiece-1024 {
		h.give("what it was started with is more than the host keeps of a run")
		return
	}
	h.seal(entry{kind: entryBegin, data: b}.append(nil))
	h.loop.resumable(true)
	if c.Run != nil {
		c.Run.Resumable = true
	}
}

// wrote writes that a commit is made.
func (h *history) wrote(facts bool, events int) {
	data := []byte{0}
	if facts {
		data[0] = 1
	}
	b, err := json.Marshal(made{h.events + uint64(events), h.clocks.spent(time.Now())})
	if err != nil {
		h.give("its budgets cannot be kept")
		return
	}
	h.write(entry{kind: entryCommit, data: append(data, b...)})
}

// isFact reports whether a commit follows from what the guest did alone: the same calls make it again.
// When events are told may depend on the time.
func isFact(c *store.Commit) bool {
	return len(c.Batches)+len(c.Files)+len(c.Staged)+len(c.Gaps) > 0 || c.Answered != ""
}

// ofFacts is isFact of the commit of an entry.
func ofFacts(e entry) bool { return len(e.data) > 0 && e.data[0] == 1 }

// counts takes note of events that are submitted.
func (h *history) counts(events int) { h.events += uint64(events) } // #nosec G115 -- a length

// asksFor gives the journal of a resumable run up, which has no place for what it asks for beside
// its work.
func (h *history) asksFor() {
	if h.resumable && h.keeps() {
		h.give("it asks for something that it does not wait for")
	}
}

// goesOnAfter reports whether the run is resumable.
func (h *history) goesOnAfter() bool { return h.resumable }

// made reports whether a commit of a run that is being resumed was made before.
func (h *history) made(c *store.Commit) bool {
	if !h.resumable {
		return true
	}
	e, err := h.player.parsed(h.ctx)
	switch {
	case err != nil:
		h.fail(err)
	case e.kind == 0:
		return !h.live()
	case isFact(c):
		if !h.live() {
			h.played(entryCommit)
			return true
		}
		return false
	case e.kind == entryCommit && !ofFacts(e):
		_, err = h.player.any(h.ctx)
		if err != nil {
			h.fail(err)
		}
	}
	return true
}

// live reports whether the run does what it did not do before. One that is resumable and comes to
// the end of its journal goes on by itself from there.
func (h *history) live() bool {
	if h.player == nil {
		return true
	}
	if !h.resumable {
		return false
	}
	e, err := h.player.peek(h.ctx)
	if err != nil {
		h.fail(err)
		return false
	}
	if e.kind == 0 {
		h.atEnd()
	}
	return h.player == nil
}

// atEnd has a run that did not wait go on by itself.
func (h *history) atEnd() {
	var last made
	if c := h.player.commit; len(c) == 0 || json.Unmarshal(c[1:], &last) != nil {
		h.fail(errHistory)
		return
	}
	more, err := h.deps.Store.Events(h.ctx, h.id, last.Events, 1)
	if err == nil && len(more) > 0 {
		err = fmt.Errorf("%w: it ends before the timeline does", errHistory)
	}
	if err != nil {
		h.fail(err)
		return
	}
	if q := h.questions.current(); q != nil && h.waits != nil {
		h.asksOn(q, h.waits)
		h.questions.put(q)
		return
	}
	h.goLive(h.held, last.Spent, time.Now(), false)
}

// called is told of every call before it is handled. It reports whether it may be.
func (h *history) called(in sandbox.Inbound) bool {
	if in.Call == abi.CallAttach && h.bound == "" {
		h.give("it attached a file")
	}
	if h.bound != "" {
		return true
	}
	e := entry{kind: entryCall, code: uint16(in.Call), hash: hashOf(in.Payload)}
	if h.live() {
		h.write(e)
		return h.outcome.ready()
	}
	was, ok := h.played(entryCall)
	if ok && (was.code != e.code || was.hash != e.hash) {
		h.diverge(fmt.Sprintf("call %d of the connector is %s", h.calls+1, told(e, was)))
		return false
	}
	h.calls++
	return ok
}

// told says how a call differs from the one that was there.
func told(is, was entry) string {
	if is.code != was.code {
		return activity(abi.Call(is.code)) + ", and was " + activity(abi.Call(was.code))
	}
	return activity(abi.Call(is.code)) + " with another request"
}

// played is the next entry, which has to be of a kind.
func (h *history) played(kind byte) (entry, bool) {
	e, err := h.player.take(h.ctx)
	switch {
	case err != nil:
		h.fail(err)
	case e.kind != kind:
		h.diverge(fmt.Sprintf("call %d of the connector comes at another place", h.calls+1))
	default:
		return e, true
	}
	return e, false
}

// reasonDiverged ends a run that did something else when it was resumed.
const reasonDiverged = "replay_diverged"

func (h *history) diverge(what string) {
	h.outcome.latch(&cause{reason: reasonDiverged, origin: "connector", message: "The run was resumed from its journal, and " +
		what + ". A connector must do the same again when it is answered the same."})
}

// fail ends the resumption for a journal that cannot be read.
func (h *history) fail(err error) {
	if errors.Is(err, errHistory) || errors.Is(err, store.ErrNotFound) {
		h.outcome.latch(&cause{reason: reasonDiverged, origin: "runtime", message: "The run cannot be resumed: " + err.Error() + "."})
		return
	}
	h.outcome.latch(hostFault("resume from journal", err))
}

// sends is told before a request is sent, and reports whether it may be: that it was is durable
// by then.
func (h *history) sends() bool {
	switch {
	case h.resumable && h.keeps():
		h.write(entry{kind: entryIntent})
		h.commits.submitNow(&store.Commit{}, nil)
	case h.sure:
		return true
	}
	h.sure = true
	return h.loop.barrier()
}

// result keeps what a call beside the loop came to.
func (h *history) result(errno abi.Errno, reply []byte) {
	h.write(entry{kind: entryResult, code: uint16(errno), data: reply})
	if !h.resumable || !h.keeps() {
		return
	}
	held, why := h.holding(true)
	if why != "" {
		h.give(why)
		return
	}
	h.held = held
	h.write(entry{kind: entryHeld, data: held})
}

// resultPlayed is what it came to. Where the journal ends before that, ok is not set, and sent
// says whether it may have been sent.
func (h *history) resultPlayed() (errno abi.Errno, reply []byte, sent, ok bool) {
	if h.resumable {
		e, err := h.player.peek(h.ctx)
		if err == nil && e.kind == entryIntent {
			sent = true
			_, err = h.player.take(h.ctx)
		}
		if err != nil {
			h.fail(err)
			return 0, nil, sent, false
		}
		if h.live() {
			return 0, nil, sent, false
		}
	}
	e, ok := h.played(entryResult)
	if next, err := h.player.peek(h.ctx); ok && err == nil && next.kind == entryHeld {
		h.held = next.data
		_, _ = h.player.take(h.ctx) // it was looked at
	}
	return abi.Errno(e.code), e.data, sent, ok
}

// replied is told of every reply before the guest gets it, and returns the time that the guest
// is told with it; 0 where it has a clock of its own.
func (h *history) replied(errno abi.Errno, payload []byte) (at uint64, ok bool) {
	if h.sealer == nil {
		return 0, true
	}
	e := entry{kind: entryReply, code: uint16(errno), at: uint64(time.Now().UnixMilli())} // #nosec G115 -- after 1970
	if h.bound != "" {
		return e.at, true
	}
	e.hash = hashOf(payload)
	if h.live() {
		h.write(e)
		return e.at, true
	}
	was, ok := h.played(entryReply)
	if ok && (was.code != e.code || was.hash != e.hash) {
		what := fmt.Sprintf("call %d of the connector is answered with something else", h.calls)
		if h.calls == 1 {
			what = "what it is started with has changed: its settings, its secrets or what it was approved"
		}
		h.diverge(what)
		return 0, false
	}
	return was.at, ok
}

// A keptAnswer is how a question ended.
type keptAnswer struct {
	ID     string                     `json:"id"`
	Status string                     `json:"status"`
	By     string                     `json:"by"`
	Data   map[string]json.RawMessage `json:"data,omitempty"`
}

// answered keeps how a question ended.
func (h *history) answered(q *asking, a answer) {
	if !h.keeps() {
		return
	}
	for _, f := range q.fields {
		if f.File {
			h.give("it was given a file")
			return
		}
	}
	b, err := json.Marshal(keptAnswer{q.id, a.Status, a.by, a.Data})
	if err != nil {
		h.give("an answer cannot be kept")
		return
	}
	h.write(entry{kind: entryAnswer, data: b})
	clear(b)
}

// again closes the open question if that is what came next. It is called while the guest stands.
func (h *history) again() {
	q := h.questions.current()
	if h.player == nil || q == nil || !h.outcome.ready() {
		return
	}
	e, err := h.player.peek(h.ctx)
	if err != nil {
		h.fail(err)
		return
	}
	if e.kind != entryAnswer {
		return
	}
	e, ok := h.played(entryAnswer)
	var kept keptAnswer
	if !ok || json.Unmarshal(e.data, &kept) != nil || kept.ID != q.id {
		h.fail(errHistory)
		return
	}
	clear(e.data)
	a := answerOf(q, kept.Status, kept.By)
	a.Data = kept.Data
	h.questions.closeQuestion(a)
}

// asks writes the mark of a question that is about to be asked, and says in it whether the run
// outlives its host, or why it does not.
func (h *history) asks(a *asking) {
	held, why := h.holds(a)
	if h.bound == "" && why == "" {
		m := mark{ID: a.id, Question: a.question, Request: h.deps.History.Request, Plan: h.frozen, Last: a.last, Spent: h.clocks.spent(time.Now()), Held: held, Bytes: h.bytes, Entries: h.entries}
		b, err := json.Marshal(m)
		e := entry{kind: entryMark, data: b}
		if err != nil || len(b) > store.MaxJournalPiece-1024 {
			why = "what it holds is more than the host keeps of a run"
		} else {
			h.cut()
			h.seal(e.append(nil))
			h.bytes += len(b)
			h.entries++
		}
	}
	if h.bound != "" {
		why = h.bound
	}
	if a.pending.HostBound = why; why == "" {
		a.pending.Journal, h.marked = h.pieces, true
	}
	h.asked = a.id
}

// holds is what bindings hold for the run, or why they cannot give it on.
func (h *history) holds(a *asking) (held []byte, why string) {
	switch {
	case h.bound != "":
		return nil, h.bound
	case a.host != nil:
		return nil, "its host asks"
	case len(h.proto.OpenAssistances()) > 0:
		return nil, "it asks for something else at the same time"
	}
	return h.holding(h.resumable)
}

// holding is what bindings hold. Where it may break off, what is half done is no reason not to.
func (h *history) holding(breakOff bool) (held []byte, why string) {
	for _, b := range h.bindings.open() {
		k, ok := b.(binding.Holder)
		if !ok {
			return nil, "it was lent what ends with its host"
		}
		one, why := k.Held(breakOff)
		if why != "" {
			return nil, why
		}
		held = append(held, one...)
	}
	return held, ""
}

// reasked is the question that a run that is being resumed asks. It reports whether it is the
// one that is open, with which the run goes on by itself.
func (h *history) reasked(a *asking) (open bool) {
	e, ok := h.played(entryMark)
	var m mark
	if !ok {
		return false
	}
	if json.Unmarshal(e.data, &m) != nil {
		h.fail(errHistory)
		return false
	}
	if h.resumable {
		if _, ok := h.played(entryCommit); !ok {
			return false
		}
	}
	r := h.deps.History.Resume
	next, err := h.player.peek(h.ctx)
	more := next.kind != 0
	switch {
	case err != nil:
		h.fail(err)
		return false
	case m.ID != a.id || !more && a.id != r.Open.ID:
		h.diverge("it asks something else")
		return false
	case more:
		if a.id == r.Open.ID { // a guest that waits at its input may have gone there since
			h.waits = &m
		}
		return false
	}
	h.asksOn(a, &m)
	return h.outcome.ready()
}

// asksOn has the question that is open asked by this process.
func (h *history) asksOn(a *asking, m *mark) {
	r := h.deps.History.Resume
	a.interruptID, a.pending, a.last = r.Open.Interrupt, &r.Open, m.Last
	if a.timed = r.Open.ExpiresAt != nil; a.timed {
		a.deadline = *r.Open.ExpiresAt
	}
	h.asked = a.id
	h.goLive(m.Held, m.Spent, r.Open.OpenedAt, true)
}

// goLive ends the replay: from now on everything counts. A run that waits for its owner has done
// so since a time.
func (h *history) goLive(held []byte, s spent, since time.Time, owner bool) {
	var last made
	if c := h.player.commit; len(c) > 0 {
		_ = json.Unmarshal(c[1:], &last) // it is what this host wrote
	}
	h.pieces, h.last, h.bytes, h.entries, h.events = h.player.next, h.player.last, h.player.bytes, h.player.taken, last.Events
	h.player = nil
	h.control.goesOn()
	for _, b := range h.bindings.open() {
		if k, ok := b.(binding.Holder); ok && len(held) > 0 {
			if err := k.Hold(held); err != nil {
				h.outcome.latch(hostFault("give a binding what it held", err))
				return
			}
		}
	}
	h.clocks.restore(s, since, owner)
	h.loop.stage(h.loop.phase())
	e := h.journal.event("run.resumed", "in_progress", data{"cause": h.deps.History.Resume.Cause})
	h.commits.submit(&store.Commit{Run: h.loop.row(), Events: []store.Event{e}}, nil)
	if owner {
		h.loop.barrier()
	}
	if c := h.cancel; c != nil {
		h.cancel = nil
		h.loop.again(*c)
	}
}

// suspendable reports whether the run can be put down now.
func (h *history) suspendable() bool {
	if h.going || !h.outcome.ready() || h.player != nil {
		return !h.going && h.outcome.ready()
	}
	if q := h.questions.current(); q != nil {
		return h.asked == q.id && q.pending.Journal > 0 && !h.pause.on()
	}
	return h.resumable && h.guest != nil && h.outcome.left() == nil && !h.pause.on()
}

// suspends puts the run down if it can be, and reports whether that was begun. A request that is
// on its way is waited for, for a time.
func (h *history) suspends(cause string) bool {
	switch {
	case !h.suspendable():
	case h.player == nil && !h.questions.open() && h.parts.calls.outsideLoop():
		if h.leaving.IsZero() {
			h.leaving = time.Now()
		}
		return true
	default:
		h.suspend(cause)
	}
	return h.going
}

// answersWithin is how long a host that stops waits for the answer of a request.
const answersWithin = 5 * time.Second

// leaves puts down a run that was only waiting for an answer of a server.
func (h *history) leaves(now time.Time, answered bool) {
	if !h.leaving.IsZero() && h.suspendable() && (answered || now.Sub(h.leaving) >= answersWithin) {
		h.suspend("host_stopped")
	}
}

// suspend puts the run down. cause is told on its timeline; a run that is being resumed is put
// down as it was.
func (h *history) suspend(cause string) {
	h.going = true
	if h.player == nil {
		h.commits.record(h.journal.event("run.suspended", "waiting", data{"cause": cause}))
		if !h.loop.barrier() {
			h.going = false // the end of the run decides
			return
		}
	}
	h.outcome.latch(suspended)
}

var suspended = &cause{reason: "suspended", origin: "runtime", message: "The run waits, and nobody performs it."}

// putDown reports whether a run whose guest is gone is not over, and lets go of what it has.
func (h *history) putDown() bool {
	if h.outcome.cause() == suspended {
		return true
	}
	if h.player == nil {
		return false
	}
	if c := h.outcome.cause(); c != nil && (c.reason == reasonDiverged || c.violation != nil) {
		h.player = nil // so that its end counts
		h.give("it is over")
		h.questions.drop()
		h.records.dropBuffers()
		return false
	}
	return true
}

// left is told that the guest of a run that is being resumed is gone.
func (h *history) left(e sandbox.Exit) {
	if !h.live() && h.outcome.ready() && (e.Kind == sandbox.ExitExited || e.Kind == sandbox.ExitTrapped) {
		h.diverge(fmt.Sprintf("the connector ended after call %d", h.calls))
	}
}

// postpones keeps a request to end the run until it goes on by itself.
func (h *history) postpones(c CancelRequest) bool {
	if h.player != nil {
		h.cancel = &c
	}
	return h.player != nil
}

// idle puts a run down that has waited for long.
func (h *history) idle(now time.Time) {
	q, o := h.questions.current(), h.deps.History
	if q == nil || o == nil || o.Awake <= 0 || now.Sub(q.since) < o.Awake || h.player != nil || !h.suspendable() {
		return
	}
	h.suspend("idle")
}
