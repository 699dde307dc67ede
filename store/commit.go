package store

import "time"

// A Commit is one atomic change made by one run: facts and the events that
// announce them. Every member is optional but Lease. A store takes at least a
// flush of records, the cursors of all streams and a thousand gaps or events at
// once.
type Commit struct {
	// Lease is checked first: ErrFenced, ErrRunTerminal.
	Lease Lease
	Grant GrantID // namespace of Staged, Advance and Gaps

	Batches []*Batch
	// Files are contents that records of Batches hold; those that are kept already are
	// dropped. They belong to the store from Submit on. A content that is held and is
	// neither here nor kept refuses the commit: *SinkError with unknown_file.
	Files   []StagedFile
	Staged  []State     // cursors accepted during the run; dropped when it ends
	Advance []State     // cursors that become the connection's state, in order
	Gaps    []DetailGap // created or replaced
	// Ask stores a pending question, Answered erases one.
	Ask      *Interaction
	Answered string
	// Journal are pieces of what the run was answered, sealed by the run (Leases.Journal).
	Journal []JournalPiece
	// ConsumeGrant marks the connection's single_use grant consumed.
	ConsumeGrant bool
	// Run replaces the run record. With End it is the final one: the lease and
	// everything pending of the run go with it, and no commit follows.
	Run *Run
	End bool

	// Events are appended in this order after the run's last one. With End the
	// last of them is the terminal event.
	Events []Event
}

// A JournalPiece is a part of a run's journal. The run numbers them from 0; one that is
// there already is replaced. Data has at most MaxJournalPiece bytes. All of them go with
// the end of the run.
type JournalPiece struct {
	N    uint64
	Data []byte
}

// MaxJournalPiece bounds a piece of a journal, in bytes.
const MaxJournalPiece = 512 << 10

// A Receipt reports the fate of a submitted commit. Commits of one run are
// applied in the order submitted; when one fails, the ones behind it fail too
// with the same error, so nothing is durable out of order.
type Receipt struct {
	done chan struct{}
	ack  Ack
	err  error
}

// An Ack describes a durable commit.
type Ack struct {
	// FirstSequence is the sequence of the commit's first event.
	FirstSequence uint64
	RecordedAt    time.Time
	// Changed and Unchanged count the commit's records: those that got a version
	// and those that were stored already, byte for byte.
	Changed, Unchanged int
}

// NewReceipt is for drivers: settle is called exactly once.
func NewReceipt() (r *Receipt, settle func(Ack, error)) {
	r = &Receipt{done: make(chan struct{})}
	return r, func(a Ack, err error) {
		r.ack, r.err = a, err
		close(r.done)
	}
}

// Done is closed once the commit is durable or has failed.
func (r *Receipt) Done() <-chan struct{} { return r.done }

// Result returns the outcome; it blocks until Done.
func (r *Receipt) Result() (Ack, error) {
	<-r.done
	return r.ack, r.err
}
