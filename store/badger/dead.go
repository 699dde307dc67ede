package badger

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// Superseded versions are bits in chunks of 4096 versions for each stream. A commit writes the versions that it
// supersedes as a list. From time to time the chunks are written and the lists deleted.
//
//	list   uvarint steps between ascending versions, the first from 0
//	chunk  purged u16  bits [64]u64, or nothing when all are purged
//
// A purged version is one whose record was removed from its segment. Its bit stays, so that a reader knows that the
// hole between two segments is no loss.
const (
	chunkShift    = 12
	chunkVersions = 1 << chunkShift
	deadChunkLen  = 2 + chunkVersions/8

	listsMax     = 16   // lists that cause the chunks to be written
	listsMaxDead = 8192 // versions in the lists that do
	dirtyMax     = 512  // chunks differing from disk that do
)

type deadChunk struct {
	bits   [chunkVersions / 64]uint64
	dead   int
	purged int
	dirty  bool
}

// gone is the chunk whose versions are all purged. It is shared and must not be modified.
var gone = func() *deadChunk {
	c := &deadChunk{dead: chunkVersions, purged: chunkVersions}
	for i := range c.bits {
		c.bits[i] = ^uint64(0)
	}
	return c
}()

func (c *deadChunk) has(v uint64) bool {
	return c.bits[v%chunkVersions/64]&(1<<(v%64)) != 0
}

func (c *deadChunk) encode() []byte {
	if c.purged == chunkVersions {
		return newValue(0)
	}
	v := binary.LittleEndian.AppendUint16(newValue(deadChunkLen), uint16(c.purged))
	for _, w := range c.bits {
		v = binary.LittleEndian.AppendUint64(v, w)
	}
	return v
}

func decodeDeadChunk(b []byte) (*deadChunk, error) {
	if len(b) == 0 {
		return gone, nil
	}
	if len(b) != deadChunkLen {
		return nil, store.Corrupt("chunk of superseded versions has %d bytes", len(b))
	}
	c := &deadChunk{purged: int(binary.LittleEndian.Uint16(b))}
	for i := range c.bits {
		c.bits[i] = binary.LittleEndian.Uint64(b[2+8*i:])
		c.dead += bits.OnesCount64(c.bits[i])
	}
	return c, nil
}

// heavy reports whether rewriting the chunk's segments is worthwhile because half of their content is superseded.
func (c *deadChunk) heavy() bool {
	dead, held := c.dead-c.purged, chunkVersions-c.purged
	return dead > 0 && 2*dead >= held
}

// A deadSet holds the superseded versions of a stream for the committer, by chunk.
type deadSet map[uint64]*deadChunk

func (d deadSet) has(v uint64) bool {
	c := d[v>>chunkShift]
	return c != nil && c.has(v)
}

func (d deadSet) set(v uint64) *deadChunk {
	c := d[v>>chunkShift]
	if c == nil {
		c = new(deadChunk)
		d[v>>chunkShift] = c
	}
	if !c.has(v) {
		c.bits[v%chunkVersions/64] |= 1 << (v % 64)
		c.dead++
		c.dirty = true
	}
	return c
}

func (d deadSet) unset(v uint64) {
	if c := d[v>>chunkShift]; c != nil && c.has(v) {
		c.bits[v%chunkVersions/64] &^= 1 << (v % 64)
		c.dead--
		c.dirty = true
	}
}

func encodeDeadList(versions []uint64) []byte {
	slices.Sort(versions)
	v, last := make([]byte, 0, 3*len(versions)), uint64(0)
	for _, n := range versions {
		v = binary.AppendUvarint(v, n-last)
		last = n
	}
	return v
}

func decodeDeadList(b []byte, fn func(v uint64)) error {
	v := uint64(0)
	for len(b) > 0 {
		step, n := binary.Uvarint(b)
		if n <= 0 {
			return store.Corrupt("list of superseded versions is cut short")
		}
		v += step
		b = b[n:]
		fn(v)
	}
	return nil
}

// A deadView answers which versions are superseded as of one snapshot.
type deadView struct {
	r      reader
	number uint64
	listed []uint64 // sorted, from the lists
	chunk  uint64   // number of the chunk in bits
	bits   *deadChunk
	loaded bool
	chunks map[uint64]*deadChunk // cache for versions in random order; nil for none
}

func newDeadView(r reader, number uint64) (*deadView, error) {
	d := &deadView{r: r, number: number}
	err := r.scan(numbered(kindDeadList, number), nil, false, func(_, payload []byte) (bool, error) {
		return true, decodeDeadList(payload, func(v uint64) { d.listed = append(d.listed, v) })
	})
	slices.Sort(d.listed)
	return d, err
}

func (d *deadView) has(v uint64) (bool, error) {
	if err := d.load(v >> chunkShift); err != nil {
		return false, err
	}
	if d.bits != nil && d.bits.has(v) {
		return true, nil
	}
	_, listed := slices.BinarySearch(d.listed, v)
	return listed, nil
}

func (d *deadView) load(chunk uint64) error {
	if d.loaded && d.chunk == chunk {
		return nil
	}
	d.bits, d.loaded, d.chunk = nil, true, chunk
	if kept, ok := d.chunks[chunk]; ok {
		d.bits = kept
		return nil
	}
	payload, ok, err := d.r.get(numbered(kindDeadChunk, d.number, chunk))
	if err != nil {
		return err
	}
	if ok {
		d.bits, err = decodeDeadChunk(payload)
	}
	if err == nil && d.chunks != nil {
		d.chunks[chunk] = d.bits
	}
	return err
}

// span reports whether all versions from a to b, inclusive, are superseded.
func (d *deadView) span(a, b uint64) (bool, error) {
	for v := a; v <= b; v++ {
		ok, err := d.has(v)
		if err != nil || !ok {
			return false, err
		}
		if d.bits == gone {
			v |= chunkVersions - 1
		}
	}
	return true, nil
}
