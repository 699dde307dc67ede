package badger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	engine "github.com/dgraph-io/badger/v4"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// errRequeue marks a group that the writer left alone because a group before it failed.
var errRequeue = errors.New("a group before this one failed")

// A writer writes groups to disk in two steps that overlap: the bulk of a group is written during the transaction of
// the group before.
type writer struct {
	s        *disk
	prepared chan *group // from the committer
	spilled  chan *group // bulk is on disk
	written  chan *group // back to the committer
	// broken is set when a group failed. The writer refuses the groups behind it until the committer has taken them
	// back.
	broken  atomic.Bool
	chain   chain
	witness witness
}

func newWriter(s *disk) *writer {
	return &writer{
		s:        s,
		prepared: make(chan *group, groupInflight), spilled: make(chan *group, groupInflight),
		written: make(chan *group, groupInflight),
	}
}

// spill writes the bulk of groups to disk until prepared is closed.
func (w *writer) spill() {
	for g := range w.prepared {
		if g.err = w.s.bulk.Write(g.bulk); errors.Is(g.err, bulk.ErrSync) {
			w.s.stop(g.err)
		}
		w.spilled <- g
	}
	close(w.spilled)
}

// write writes the transactions of groups to disk, one after the other.
func (w *writer) write() {
	for g := range w.spilled {
		switch {
		case w.broken.Load():
			g.err = errRequeue
		case g.err == nil:
			g.err = w.writeGroup(g)
		}
		if g.err != nil {
			w.broken.Store(true)
		}
		w.written <- g
	}
	close(w.written)
}

// writeGroup syncs the engine, then the witness. A failure before the engine's transaction leaves nothing behind. After
// it the outcome is unknown, and the store refuses writes until it is reopened.
func (w *writer) writeGroup(g *group) error {
	if g.terminal {
		if err := w.s.opts.Fault(FaultTerminalBefore); err != nil {
			return err
		}
	}
	if err := w.s.opts.Fault(FaultBeforeDB); err != nil {
		return err
	}
	next := w.chain.next(g.seq, g.digest())
	txn, err := w.fill(g, next)
	if err != nil {
		return err
	}
	defer txn.Discard()
	if err := w.commitGroup(txn, g, next); err != nil {
		w.s.stop(err)
		return err
	}
	w.chain = next
	return nil
}

func (w *writer) commitGroup(txn *engine.Txn, g *group, next chain) error {
	if err := txn.CommitAt(g.seq, nil); err != nil {
		return fmt.Errorf("commit to engine: %w", err)
	}
	if err := w.s.opts.Fault(FaultAfterDB); err != nil {
		return err
	}
	if err := w.witness.append(next, w.chain); err != nil {
		return err
	}
	if err := w.s.opts.Fault(FaultAfterWitness); err != nil {
		return err
	}
	if g.terminal {
		if err := w.s.opts.Fault(FaultTerminalAfter); err != nil {
			return err
		}
	}
	return w.s.opts.Fault(FaultBeforeAck)
}

// fill puts the writes of g and the new head of the chain into one transaction.
func (w *writer) fill(g *group, next chain) (*engine.Txn, error) {
	txn := w.s.db.NewTransactionAt(math.MaxUint64, true)
	for _, wr := range append(slices.Clip(g.writes), chainWrite(next)) {
		if err := put(txn, wr); err != nil {
			txn.Discard()
			return nil, fmt.Errorf("fill transaction of %d bytes: %w", g.bytes, err)
		}
	}
	return txn, nil
}

func put(txn *engine.Txn, w write) error {
	if w.value == nil {
		return txn.Delete(w.key)
	}
	return txn.Set(w.key, w.value)
}

func chainWrite(c chain) write {
	k := key(kindChain)
	return write{key: k, value: seal(k, c.encode(newValue(chainBytes)))}
}

// A chain is the head of the chain over all commits.
type chain struct {
	seq  uint64
	link [sha256.Size]byte
}

// format is the version of the format on disk.
const format = 2

const chainBytes = 4 + 8 + sha256.Size

func (c chain) next(seq uint64, digest [sha256.Size]byte) chain {
	h := sha256.New()
	h.Write(c.link[:])
	h.Write(binary.LittleEndian.AppendUint64(nil, seq))
	h.Write(digest[:])
	return chain{seq: seq, link: [sha256.Size]byte(h.Sum(nil))}
}

func (c chain) encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, format)
	b = binary.LittleEndian.AppendUint64(b, c.seq)
	return append(b, c.link[:]...)
}

func decodeChain(b []byte) (chain, error) {
	if len(b) != chainBytes {
		return chain{}, store.Corrupt("chain head has %d bytes", len(b))
	}
	if f := binary.LittleEndian.Uint32(b); f != format {
		return chain{}, fmt.Errorf("store has format %d; this program reads format %d", f, format)
	}
	return chain{seq: binary.LittleEndian.Uint64(b[4:]), link: [sha256.Size]byte(b[12:])}, nil
}
