package badger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// A group is what becomes one engine transaction: the writes of one or more
// items, and what to do once it is durable.
type group struct {
	seq      uint64
	items    []*item
	writes   []write
	index    map[string]int // key to its write
	journal  []overwritten  // since the last savepoint
	bulk     []bulk.Chunk   // goes to the bulk files before the transaction
	bytes    int64          // in the transaction
	inBulk   int64          // bytes in the bulk files
	records  int
	terminal bool // holds a terminal commit
	closed   bool // takes no further item
	wake     map[store.RunID]bool
	undo     []func()  // to take back its effects on memory, in order of effect
	publish  []func()  // to show its effects to readers
	refused  []refusal // answered once it is durable

	c     *committer
	spill bool // the commit being applied is a large one
	err   error
}

// A refusal is an item that conflicts with what this group, or one before it,
// makes durable.
type refusal struct {
	item *item
	err  error
}

type write struct {
	key   []byte
	value []byte // sealed; nil deletes
}

// get sees the group's own writes, those of groups on their way to disk, and
// the engine, in this order.
func (g *group) get(k []byte) ([]byte, bool, error) {
	raw, ok := g.pending(k)
	if !ok {
		return g.c.base.get(k)
	}
	if raw == nil {
		return nil, false, nil
	}
	form, payload, err := unseal(k, raw)
	if err != nil {
		return nil, false, store.Corrupt("key %.40q in flight: %v", k, err)
	}
	if form == formPlain {
		return payload, true, nil
	}
	return g.extentInFlight(k, payload)
}

// pending is the sealed value that a group not yet durable gives k.
func (g *group) pending(k []byte) (raw []byte, ok bool) {
	if i, ok := g.index[string(k)]; ok {
		return g.writes[i].value, true
	}
	for _, other := range g.c.inflightNewestFirst() {
		if i, ok := other.index[string(k)]; ok {
			return other.writes[i].value, true
		}
	}
	return nil, false
}

// Values from this size on are bulk; in a commit that would fill much of a
// transaction, smaller ones are too.
const (
	bulkValue  = 16 << 10
	spillValue = 512
)

// store writes a value made with newValue where values of its size go.
func (g *group) store(k, value []byte) {
	if len(value) >= bulkValue || g.spill && len(value) >= spillValue {
		g.putBulk(k, value)
		return
	}
	g.put(k, value)
}

// put writes a value made with newValue, which is a small one, to the engine.
func (g *group) put(k, value []byte) { g.set(k, seal(k, value)) }

// replace is store for a key that may hold bulk already, which becomes garbage.
func (g *group) replace(k, value []byte) error {
	if err := g.dropBulk(k); err != nil {
		return err
	}
	g.store(k, value)
	return nil
}

// remove deletes k; bulk that it holds becomes garbage.
func (g *group) remove(k []byte) error {
	if err := g.dropBulk(k); err != nil {
		return err
	}
	g.set(k, nil)
	return nil
}

func (g *group) dropBulk(k []byte) error {
	raw, ok := g.pending(k)
	if !ok {
		var err error
		if raw, err = g.c.base.raw(k); err != nil {
			return err
		}
	}
	if raw == nil {
		return nil
	}
	form, payload, err := unseal(k, raw)
	if err != nil {
		return store.Corrupt("key %.40q: %v", k, err)
	}
	switch form {
	case formPlain:
		return nil
	case formExtent:
		return g.dropExtent(k, payload)
	}
	_, id, n, ok := parseChunkRef(payload)
	if !ok {
		return store.Corrupt("long value: bad reference")
	}
	for i := range n {
		g.set(numbered(kindChunk, id, uint64(i)), nil)
	}
	return nil
}

func (g *group) set(k, sealed []byte) {
	g.bytes += int64(len(k)+len(sealed)) + writeOverhead
	if i, ok := g.index[string(k)]; ok {
		g.journal = append(g.journal, overwritten{i, g.writes[i].value})
		g.writes[i].value = sealed
		return
	}
	g.index[string(k)] = len(g.writes)
	g.writes = append(g.writes, write{key: k, value: sealed})
}

// An overwritten write is what a savepoint needs to take a later one back.
type overwritten struct {
	index int
	value []byte
}

// A savepoint is a state a group can go back to.
type savepoint struct {
	writes, records, undo, publish int
	bytes, inBulk                  int64
}

func (g *group) save() savepoint {
	g.journal = g.journal[:0]
	return savepoint{len(g.writes), g.records, len(g.undo), len(g.publish), g.bytes, g.inBulk}
}

// rollback takes back everything since the last save, memory included.
func (g *group) rollback(p savepoint) {
	for _, o := range slices.Backward(g.journal) {
		g.writes[o.index].value = o.value
	}
	for _, w := range g.writes[p.writes:] {
		delete(g.index, string(w.key))
	}
	for _, undo := range slices.Backward(g.undo[p.undo:]) {
		undo()
	}
	g.writes, g.undo, g.publish = g.writes[:p.writes], g.undo[:p.undo], g.publish[:p.publish]
	g.bytes, g.inBulk, g.records, g.journal = p.bytes, p.inBulk, p.records, g.journal[:0]
}

// writeOverhead is what one write costs in the engine beside its bytes.
const writeOverhead = 128

func (g *group) putJSON(k []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return g.replace(k, append(newValue(len(text)), text...))
}

// getJSON reads k into v; ok is false when there is no such key.
func (g *group) getJSON(k []byte, v any) (ok bool, err error) {
	payload, ok, err := g.get(k)
	if err != nil || !ok {
		return false, err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return false, store.Corrupt("key %.40q: %v", k, err)
	}
	return true, nil
}

// digestWhole is the size up to which a value enters the chain byte by byte.
const digestWhole = 4096

// digest is the digest of the transaction in the chain. A longer value
// enters as its length and checksum; the records in it enter through the sums
// in the counters.
func (g *group) digest() [sha256.Size]byte {
	h := sha256.New()
	var b [12]byte
	for _, w := range g.writes {
		binary.LittleEndian.PutUint32(b[:], uint32(len(w.key)))
		binary.LittleEndian.PutUint32(b[4:], uint32(len(w.value)))
		clear(b[8:])
		if len(w.value) > digestWhole {
			copy(b[8:], w.value[len(w.value)-4:])
		}
		h.Write(b[:])
		h.Write(w.key)
		if len(w.value) <= digestWhole {
			h.Write(w.value)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
