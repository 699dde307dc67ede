package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A History configures the journal of a run: the sealed record of what its guest was answered, which lets a run
// that waits for its owner outlive its host.
type History struct {
	// Key seals the journal. It has 32 bytes and belongs to this run only.
	Key []byte
	// Bound says why this run does not outlive its host, "" if it may.
	Bound string
	// Request is what the host needs to prepare the run again. It is stored sealed.
	Request []byte
	// MaxBytes and MaxEntries limit the journal; 0 means the default.
	MaxBytes, MaxEntries int
	// Awake is how long a run waits before it is suspended; 0 means forever.
	Awake time.Duration
	// Resumable reports that the connector continues after the end of its host even if it did not wait.
	// Everything that it is answered is then made durable together with what follows from it, and each request
	// before it is sent.
	Resumable bool
	// Resume continues a suspended run; nil for a new one.
	Resume *Suspended
}

// Defaults of History.
const (
	DefaultHistoryBytes   = 64 << 20
	DefaultHistoryEntries = 1_000_000
)

// A mark is the state of a run, besides its calls, when it asks a question or begins.
type mark struct {
	ID       string     `json:"id,omitempty"`
	Question Question   `json:"question"`
	Request  []byte     `json:"request"`
	Plan     planState  `json:"plan"`
	Last     bool       `json:"last,omitempty"`
	Spent    clockState `json:"spent"`
	Held     []byte     `json:"held,omitempty"`
	Bytes    int        `json:"bytes"` // of the journal
	Entries  int        `json:"entries"`
}

// clockState is what a run has used of its budgets.
type clockState struct {
	Started                                     time.Time
	Work, Owner, Rate, Compute, Activity, Pause time.Duration
}

// A commitData is the journal's entry of a commit.
type commitData struct {
	Events uint64     `json:"events"` // of the run, up to its end
	Spent  clockState `json:"spent"`
}

// history is the journal of a run. It is written while the run proceeds, and read while it is resumed.
type history struct {
	*parts
	sealer    *sealer
	hostBound string // why the run does not outlive its host, "" if it does
	resumable bool

	buffer  []byte // space for a tag, then entries that are in no piece yet; or empty
	ready   []store.JournalPiece
	pieces  uint64 // number of sealed pieces
	last    hash16
	bytes   int
	entries int

	reader     *journalReader // nil unless the run is being resumed
	calls      int            // number of calls that were played
	cancel     *CancelRequest // received during the replay; nil for none
	lastCallAt time.Time      // the newest call since then
	asked      string         // id of the question that was marked last
	suspending bool           // the run is being suspended
	planState  planState      // what the plan was made from

	// The fields below are for resumable runs.
	events        uint64    // number of submitted events
	held          []byte    // what the network held after its newest call
	sure          bool      // false until it is durable that the run is no longer resumable
	leavingSince  time.Time // since when it waits to be suspended after a request; zero if it does not
	markPending   bool      // the next commit asks the question of a mark
	openMark      *mark     // of the open question, until this process asks it
	outOfOrder    uint64    // number of events that overtook others, each with its own piece
	reportedStall *stall    // the stall that the newest of these reports, if not over
}

// newHistory returns the journal of a run. bound is set if no journal is kept.
func newHistory(all *parts, h *History) *history {
	out := &history{parts: all, hostBound: "its host does not keep what it was answered",
		planState: all.plan.snapshot(), sure: true}
	if h == nil {
		return out
	}
	if out.hostBound = h.Bound; out.hostBound != "" {
		return out
	}
	var err error
	if out.sealer, err = newSealer(h.Key, all.id); err != nil {
		out.hostBound = err.Error()
		return out
	}
	out.resumable = h.Resumable
	if r := h.Resume; r != nil {
		out.reader = &journalReader{sealer: out.sealer, pieces: r.Open.Journal,
			load: func(ctx context.Context, n uint64) ([]byte, error) {
				return all.deps.Store.Journal(ctx, all.id, n)
			}}
		if out.resumable {
			out.reader.pieces = 0
		}
	}
	return out
}

// replaying reports whether the guest is answered from the journal.
func (h *history) replaying() bool { return h.reader != nil }

// enabled reports whether the journal is written.
func (h *history) enabled() bool { return h.hostBound == "" && h.reader == nil }

// write appends an entry. If that exceeds the limits, the journal is given up.
func (h *history) write(e entry) {
	if !h.enabled() {
		return
	}
	most, entries := DefaultHistoryBytes, DefaultHistoryEntries
	if d := h.deps.History; d.MaxBytes > 0 {
		most = d.MaxBytes
	}
	if d := h.deps.History; d.MaxEntries > 0 {
		entries = d.MaxEntries
	}
	if len(h.buffer) == 0 {
		h.buffer = append(h.buffer, make([]byte, pieceBytes16)...)
	}
	before := len(h.buffer)
	h.buffer = e.append(h.buffer)
	h.bytes, h.entries = h.bytes+len(h.buffer)-before, h.entries+1
	if h.bytes > most || h.entries > entries {
		h.disable("what it was answered is more than the host keeps of a run")
		return
	}
	if len(h.buffer) >= pieceEntries {
		h.sealBuffered()
	}
	if len(h.ready) >= piecesAtOnce && !h.resumable {
		h.commits.submitNow(&store.Commit{}, nil) // which takes the pieces
	}
}

// piecesAtOnce is how many pieces wait for a commit of the run before they get their own.
const piecesAtOnce = 4

// disable gives the journal up, for a reason that is shown to the owner.
func (h *history) disable(why string) {
	if h.resumable {
		h.loop.hostBound(why)
	}
	h.hostBound, h.buffer, h.ready = why, nil, nil
	h.makeNotResumable()
}

// makeNotResumable makes a run not resumable, because it is over or does from now on what its journal lacks.
func (h *history) makeNotResumable() {
	if h.resumable {
		h.resumable, h.sure = false, false
		h.loop.resumable(false)
		h.commits.submitNow(&store.Commit{Run: h.loop.row()}, nil)
	}
}

// sealBuffered seals the buffered entries in pieces, each preceded by the tag of the one before it.
func (h *history) sealBuffered() {
	left := h.buffer
	for len(left) > pieceBytes16 {
		n := min(len(left), store.MaxJournalPiece-1024)
		h.seal(left[:n])
		left = left[n-pieceBytes16:]
	}
	if h.buffer = h.buffer[:0]; cap(h.buffer) > 2*pieceEntries {
		h.buffer = nil
	}
}

// seal seals a piece: space for a tag, then entries.
func (h *history) seal(plain []byte) {
	copy(plain, h.last[:])
	piece := h.sealer.seal(h.pieces, plain)
	h.ready = append(h.ready, store.JournalPiece{N: h.pieces, Data: piece})
	h.pieces, h.last = h.pieces+1, tagOf(piece)
}

// takePieces returns the pieces that belong to a commit. For a resumable run these are all entries, so that a commit
// and the entries that led to it become durable together.
func (h *history) takePieces(c *store.Commit) []store.JournalPiece {
	if h.resumable && h.enabled() {
		if h.pieces == 0 {
			h.begin(c)
		}
		if facts := isFact(c) || h.markPending; facts || len(c.Events) > 0 {
			h.writeCommit(facts, len(c.Events))
		}
		h.sealBuffered()
	}
	out := h.ready
	h.ready, h.markPending = nil, false
	if h.resumable && len(out) > 0 {
		out = append(out, h.sealer.sealLength(h.pieces, h.last))
	}
	return out
}

// begin writes how the run was started, with the first commit.
func (h *history) begin(c *store.Commit) {
	b, err := json.Marshal(mark{Request: h.deps.History.Request, Plan: h.planState})
	if err != nil || len(b) > store.MaxJournalPiece-1024 {
		h.disable("what it was started with is more than the host keeps of a run")
		return
	}
	h.seal(entry{kind: entryBegin, data: b}.append(make([]byte, pieceBytes16)))
	h.loop.resumable(true)
	if c.Run != nil {
		c.Run.Resumable = true
	}
}

// writeCommit writes the entry of a commit.
func (h *history) writeCommit(facts bool, events int) {
	data := []byte{0}
	if facts {
		data[0] = 1
	}
	b, err := json.Marshal(commitData{h.events + uint64(events), h.clocks.snapshot(time.Now())})
	if err != nil {
		h.disable("its budgets cannot be kept")
		return
	}
	h.write(entry{kind: entryCommit, data: append(data, b...)})
}

// isFact reports whether a commit follows from the guest's calls alone, so that the same calls repeat it.
// Commits of events only may depend on the time.
func isFact(c *store.Commit) bool {
	return len(c.Batches)+len(c.Files)+len(c.Staged)+len(c.Gaps) > 0 || c.Answered != ""
}

// ofFacts is isFact for the commit of an entry.
func ofFacts(e entry) bool { return len(e.data) > 0 && e.data[0] == 1 }

// addEvents adds to the number of submitted events.
func (h *history) addEvents(events int) { h.events += uint64(events) } // #nosec G115 -- a length

// assistanceAsked gives up the journal of a resumable run that asks for an assistance, which the journal cannot
// represent.
func (h *history) assistanceAsked() {
	if h.resumable && h.enabled() {
		h.disable("it asks for something that it does not wait for")
	}
}

// hostBoundReason returns why the run ends with its host, "" if it does not.
func (h *history) hostBoundReason() string { return h.hostBound }

// isResumable reports whether the run is resumable.
func (h *history) isResumable() bool { return h.resumable }

// recordCall records or compares a call before it is handled. It reports whether the call may be handled.
func (h *history) recordCall(in sandbox.Inbound) bool {
	if in.Call == abi.CallAttach && h.hostBound == "" {
		h.disable("it attached a file")
	}
	if h.hostBound != "" {
		return true
	}
	e := entry{kind: entryCall, code: uint16(in.Call), hash: hashOf(in.Payload)}
	if h.live() {
		h.write(e)
		return h.outcome.ready()
	}
	h.lastCallAt = time.Now()
	recorded, ok := h.nextEntry(entryCall)
	if ok && (recorded.code != e.code || recorded.hash != e.hash) {
		h.diverge(fmt.Sprintf("call %d of the connector is %s", h.calls+1, describeMismatch(e, recorded)))
		return false
	}
	h.calls++
	return ok
}

// recordIntent makes durable that a request is about to be sent. It reports whether the request may be sent.
func (h *history) recordIntent() bool {
	switch {
	case h.resumable && h.enabled():
		h.write(entry{kind: entryIntent})
		h.commits.submitNow(&store.Commit{}, nil)
	case h.sure:
		return true
	}
	h.sure = true
	return h.loop.barrier()
}

// recordResult records the result of a call that was handled outside of the loop.
func (h *history) recordResult(errno abi.Errno, reply []byte) {
	h.write(entry{kind: entryResult, code: uint16(errno), data: reply})
	if !h.resumable || !h.enabled() {
		return
	}
	held, why := h.bindingState(true)
	if why != "" {
		h.disable(why)
		return
	}
	if !bytes.Equal(held, h.held) {
		h.held = held
		h.write(entry{kind: entryHeld, data: held})
	}
}

// recordReply records or compares a reply before the guest gets it, and returns the time that the guest is told with
// it; 0 if the guest has its own clock. A reply that is the result of its call, which the journal has, is neither
// hashed nor compared.
func (h *history) recordReply(r callReply) (at uint64, ok bool) {
	if h.sealer == nil {
		return 0, true
	}
	at = uint64(time.Now().UnixMilli()) // #nosec G115 -- after 1970
	if h.hostBound != "" {
		return at, true
	}
	e := entry{kind: entryPassed, at: at}
	if !r.result {
		e = entry{kind: entryReply, code: uint16(r.errno), at: at, hash: hashOf(r.payload)}
	}
	if h.live() {
		h.write(e)
		return at, true
	}
	recorded, ok := h.nextEntry(e.kind)
	if ok && (recorded.code != e.code || recorded.hash != e.hash) {
		what := fmt.Sprintf("call %d of the connector is answered with something else", h.calls)
		if h.calls == 1 {
			what = "what it is started with has changed: its settings, its secrets or what it was approved"
		}
		h.diverge(what)
		return 0, false
	}
	return recorded.at, ok
}

// A savedAnswer is the journal's entry of how a question ended.
type savedAnswer struct {
	ID     string                     `json:"id"`
	Status string                     `json:"status"`
	By     string                     `json:"by"`
	Data   map[string]json.RawMessage `json:"data,omitempty"`
}

// recordAnswer records how a question ended.
func (h *history) recordAnswer(q *pendingQuestion, a answer) {
	if h.resumable {
		h.loop.hostBound("") // drops a reason that only the question had
	}
	if !h.enabled() {
		return
	}
	for _, f := range q.fields {
		if f.File {
			h.disable("it was given a file")
			return
		}
	}
	b, err := json.Marshal(savedAnswer{q.id, a.Status, a.by, a.Data})
	if err != nil {
		h.disable("an answer cannot be kept")
		return
	}
	h.write(entry{kind: entryAnswer, data: b})
	clear(b)
}

// writeMark writes the mark of a question that is about to be asked, and sets in the question whether the run
// outlives its host, or why not.
func (h *history) writeMark(a *pendingQuestion) {
	held, why := h.questionState(a)
	if h.hostBound == "" && why == "" {
		m := mark{ID: a.id, Question: a.question, Request: h.deps.History.Request, Plan: h.planState, Last: a.budgetDeadline,
			Spent: h.clocks.snapshot(time.Now()), Held: held, Bytes: h.bytes, Entries: h.entries}
		b, err := json.Marshal(m)
		e := entry{kind: entryMark, data: b}
		if err != nil || len(b) > store.MaxJournalPiece-1024 {
			why = "what it holds is more than the host keeps of a run"
		} else {
			h.sealBuffered()
			h.seal(e.append(make([]byte, pieceBytes16)))
			h.bytes += len(b)
			h.entries++
		}
	}
	if h.hostBound != "" {
		why = h.hostBound
	}
	if h.deps.History != nil { // otherwise no run of this host outlives it, which need not be shown
		h.loop.hostBound(why)
	}
	if a.pending.HostBound = why; why == "" {
		a.pending.Journal, h.markPending = h.pieces, true
	}
	h.asked = a.id
}

// questionState returns the state that bindings hold for the run, or why they cannot hand it over.
func (h *history) questionState(a *pendingQuestion) (held []byte, why string) {
	switch {
	case h.hostBound != "":
		return nil, h.hostBound
	case a.host != nil:
		return nil, "its host asks"
	case len(h.proto.OpenAssistances()) > 0:
		return nil, "it asks for something else at the same time"
	}
	return h.bindingState(h.resumable)
}

// bindingState returns the state that bindings hold. With breakOff, unfinished requests are no obstacle.
func (h *history) bindingState(breakOff bool) (held []byte, why string) {
	for _, b := range h.bindings.open() {
		k, ok := b.(binding.StateSaver)
		if !ok {
			return nil, "it was lent what ends with its host"
		}
		one, why := k.SaveState(breakOff)
		if why != "" {
			return nil, why
		}
		held = append(held, one...)
	}
	return held, ""
}
