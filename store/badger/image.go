package badger

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/sluicehost/sluice/store"
)

var (
	_ store.Imager = (*Store)(nil)
	_ store.Image  = (*image)(nil)
)

// An image pins one commit. Between two calls it holds no snapshot.
type image struct {
	s    *disk
	ts   uint64
	once sync.Once
}

// Image implements store.Imager. It returns the damage of a damaged store, because a backup would hide it. Bulk files
// that the image needs are kept until it is closed. The engine's value log is never collected.
//
// Erasures in progress, including interrupted ones, are completed first: a store loaded with their notes would erase
// the data when it is opened and so differ from the image.
func (s *disk) Image(ctx context.Context) (store.Image, error) {
	if s.damage != nil {
		return nil, s.damage
	}
	s.eraser.partial.Lock()
	defer s.eraser.partial.Unlock()
	if err := s.eraser.finish(ctx); err != nil {
		return nil, err
	}
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return &image{s: s, ts: s.visible.repin(r.ts)}, nil
}

// Close implements store.Image.
func (i *image) Close() {
	i.once.Do(func() {
		i.s.visible.unpin(i.ts)
		i.s.removePending()
	})
}

func (i *image) snapshot(ctx context.Context) (*snapshot, error) {
	return i.s.snapshotOf(ctx, func() uint64 { return i.s.visible.repin(i.ts) })
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
			Live: n.live, Tombstones: n.tombstones, LastVersion: n.last,
		})
		return true, err
	})
	return out, err
}

// firstPart returns the first part of a key of two parts.
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
