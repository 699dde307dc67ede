package badger

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// An image is everything a store holds, as of one commit:
//
//	"sluice store image\n"  format u32
//	frame  key_len u16  value_len u32  key  value        key by key, ascending
//	end    0 u16        0 u32          frames u64        little-endian
//
// Values are whole, wherever the engine has them. What only this directory
// means is left out: the chain, the bulk files, the parts of long values. It is
// our own form and not the engine's backup, which loads a flipped bit without
// complaint (S134).
const (
	imageMagic = "sluice store image\n"
	frameHead  = 2 + 4
	maxKey     = 65000    // the engine's own limit
	maxValue   = 64 << 20 // no commit has a value as long
)

// local says that a key means nothing in another directory.
func local(kind byte) bool { return kind == kindChain || kind == kindFile || kind == kindChunk }

// moved kinds are those that an image may have.
func moved(kind byte) bool {
	return (kind >= kindChain && kind <= kindErase || kind == kindDue) && !local(kind)
}

var (
	_ store.Imager = (*Store)(nil)
	_ store.Image  = (*image)(nil)
)

// An image pins one commit, as a view does. Between two calls it holds neither the
// engine nor its door.
type image struct {
	s    *Store
	ts   uint64
	once sync.Once
}

// Image implements store.Imager. A store that is damaged has none: what is
// wrong with it would be lost with the backup (S122). Bulk files that the image
// needs stay until it is closed; the engine's value log is never collected.
//
// What is being erased goes first, also what an eraser left that gave up: a store
// that is loaded with the note would erase it when it is opened, and be another one.
func (s *Store) Image(ctx context.Context) (store.Image, error) {
	if s.damage != nil {
		return nil, s.damage
	}
	s.whole.Lock()
	defer s.whole.Unlock()
	if err := s.finishErasing(ctx); err != nil {
		return nil, err
	}
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return &image{s: s, ts: s.repin(r.ts)}, nil
}

// Close implements store.Image.
func (i *image) Close() { i.once.Do(func() { i.s.unpin(i.ts) }) }

func (i *image) snapshot(ctx context.Context) (*snapshot, error) {
	return i.s.snapshotOf(ctx, func() uint64 { return i.s.repin(i.ts) })
}

// Counters implements store.Image.
func (i *image) Counters(ctx context.Context) ([]store.Counters, error) {
	r, err := i.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var out []store.Counters
	err = r.scan([]byte{kindCounters}, nil, false, func(k, payload []byte) (bool, error) {
		n, err := decodeCounters(payload)
		connection, ok := firstPart(k)
		if err == nil && !ok {
			err = store.Corrupt("key %.40q names no stream", k)
		}
		out = append(out, store.Counters{
			Connection: store.ConnectionID(connection), Stream: store.Stream(lastPart(k)),
			Live: n.live, Tombstones: n.tombstones, LastVersion: n.last, Sum: fmt.Sprintf("%016x%016x", n.sum.hi, n.sum.lo),
		})
		return true, err
	})
	return out, err
}

// firstPart is the first of the two parts of a key.
func firstPart(k []byte) (string, bool) {
	if len(k) < 3 {
		return "", false
	}
	n := int(binary.BigEndian.Uint16(k[1:]))
	if len(k) < 3+n {
		return "", false
	}
	return string(k[3 : 3+n]), true
}

// Copy implements store.Image.
func (i *image) Copy(ctx context.Context, w io.Writer) error {
	r, err := i.snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	b := bufio.NewWriterSize(w, 256<<10)
	head := binary.LittleEndian.AppendUint32([]byte(imageMagic), format)
	if _, err := b.Write(head); err != nil {
		return err
	}
	frames := uint64(0)
	err = r.scan(nil, nil, false, func(k, payload []byte) (bool, error) {
		if local(k[0]) {
			return true, ctx.Err()
		}
		if l, _ := i.s.space.state(); l == halted {
			return false, store.ErrNoSpace // the engine closes when this ends
		}
		frames++
		head = binary.LittleEndian.AppendUint16(head[:0], uint16(len(k)))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(payload)))
		for _, part := range [][]byte{head, k, payload} {
			if _, err := b.Write(part); err != nil {
				return false, err
			}
		}
		return true, ctx.Err()
	})
	if err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint64(make([]byte, frameHead), frames)
	if _, err := b.Write(end); err != nil {
		return err
	}
	return b.Flush()
}
