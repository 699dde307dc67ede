package badger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// A group becomes one engine transaction: the writes of one or more items, and what to do once they are durable.
type group struct {
	seq      uint64
	items    []*item
	writes   []write
	index    map[string]int // from a key to its write
	journal  []overwritten  // since the last savepoint
	bulk     []bulk.Chunk   // written to the bulk files before the transaction
	bytes    int64          // in the transaction
	inBulk   int64          // in the bulk files
	records  int
	terminal bool // contains a terminal commit
	closed   bool // accepts no more items
	wake     map[store.RunID]bool
	undo     []func()  // revert its effects on memory; in order of effect
	publish  []func()  // make its effects visible to readers
	refused  []refusal // answered once the group is durable

	c     *committer
	spill bool // the commit being applied is a large one
	err   error
}

// A refusal is an item that conflicts with what this group or an earlier one writes.
type refusal struct {
	item *item
	err  error
}

type write struct {
	key   []byte
	value []byte // sealed; nil deletes
}

// get looks k up in the group's own writes, then in the groups on their way to disk, then in the engine.
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

// pending returns the sealed value that a group not yet durable gives k; nil means that it deletes k.
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

// Payloads of at least bulkValue bytes are bulk. In a commit that would fill much of a transaction, so are those of at
// least spillValue bytes.
const (
	bulkValue  = 16 << 10
	spillValue = 512
)

// bulky reports whether a payload of n bytes goes to the bulk files.
func (g *group) bulky(n int) bool { return n >= bulkValue || g.spill && n >= spillValue }

// store writes a payload, of which it keeps a copy, to the bulk files or the engine, depending on its size.
func (g *group) store(k, payload []byte) {
	if g.bulky(len(payload)) {
		g.putPayload(k, payload)
		return
	}
	g.put(k, append(newValue(len(payload)), payload...))
}

// put writes a small value made with newValue to the engine.
func (g *group) put(k, value []byte) { g.set(k, seal(k, value)) }

// replace is like store for a key that may already hold bulk, which becomes garbage.
func (g *group) replace(k, payload []byte) error {
	if err := g.dropBulk(k); err != nil {
		return err
	}
	g.store(k, payload)
	return nil
}

// remove deletes k. Bulk that it holds becomes garbage.
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

// An overwritten is the earlier value of a write, for rollback to restore.
type overwritten struct {
	index int
	value []byte
}

// A savepoint is a state of a group to which rollback can return.
type savepoint struct {
	writes, records, undo, publish int
	bytes, inBulk                  int64
}

func (g *group) save() savepoint {
	g.journal = g.journal[:0]
	return savepoint{len(g.writes), g.records, len(g.undo), len(g.publish), g.bytes, g.inBulk}
}

// rollback undoes everything since save returned p, including effects on memory.
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

// writeOverhead is the cost of a write in the engine beyond its bytes.
const writeOverhead = 128

func (g *group) putJSON(k []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return g.replace(k, text)
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

// digestWhole is the size up to which a value is digested in full.
const digestWhole = 4096

// digest returns the digest of the transaction for the chain. Longer values enter with their length and checksum; the
// records in them are covered by the sums in the counters.
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
