package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
)

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

// Permits is for drivers: it checks what the connection's grant, nil for none, and the test
// hook say of a commit whose lease is the current one. A grant that stopped being usable
// refuses what was collected, and success: *SinkError. failState is a stream whose cursor
// is refused, "" for none: *StateError.
func (c *Commit) Permits(g *Grant, at time.Time, failState Stream) error {
	for _, st := range c.Advance {
		if st.Stream == failState && st.Stream != "" {
			return &StateError{Stream: st.Stream, Err: errors.New("refused by the test hook")}
		}
	}
	succeeds := c.End && c.Run != nil && c.Run.Status == abi.Succeeded
	if !succeeds && len(c.Batches) == 0 && len(c.Advance) == 0 || g == nil || g.ID != c.Grant {
		return nil
	}
	if code := g.Fault(at); code != "" {
		return &SinkError{Code: code, Err: fmt.Errorf("grant %s of connection %s", g.ID, c.Lease.ConnectionID)}
	}
	return nil
}

// Consume is for drivers: it marks the grant of the connection consumed, and reports whether
// it did. It does not if another grant has taken its place.
func (c *Commit) Consume(conn *Connection, at time.Time) bool {
	g := conn.Grant
	if g == nil || g.ID != c.Grant || g.AccessMode != "single_use" {
		return false
	}
	g.Status, conn.UpdatedAt = "consumed", at
	return true
}

// EncodeEvent is for drivers: it is the commit's i-th event as it is stored.
func (c *Commit) EncodeEvent(i int, sequence uint64, at time.Time) ([]byte, error) {
	e := c.Events[i]
	e.Sequence, e.RecordedAt, e.CausationID = sequence, at, ""
	if i > 0 {
		e.CausationID = c.Events[0].ID
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	return text, nil
}

// A JournalPiece is a part of a run's journal. The run numbers them, below 2^63; one that is
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
