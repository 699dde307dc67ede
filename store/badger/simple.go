package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

type counters struct {
	Number, Live, Tombstones, Last, Bytes uint64
	UpdatedAt                             time.Time
}

func (c *committer) ingest(g *group, lease store.Lease, b *store.Batch, now time.Time) (changed, unchanged int, err error) {
	ck := key(kindCounters, string(lease.ConnectionID), string(b.Stream))
	var n counters
	ok, err := g.getJSON(ck, &n)
	if err != nil {
		return 0, 0, err
	}
	if !ok {
		if n.Number, err = nextNumber(g, key(kindNumber)); err != nil {
			return 0, 0, err
		}
	}
	for _, ch := range b.Changes() {
		pk := append(numbered(kindPage, n.Number), ch.Key...)
		old, exists, err := g.get(pk)
		if err != nil {
			return 0, 0, err
		}
		var cur store.Change
		if exists {
			v, _, err := g.get(numbered(kindSegment, n.Number, binary.LittleEndian.Uint64(old)))
			if err != nil {
				return 0, 0, err
			}
			k := int(v[0])
			cur, _ = store.Unpack(v[1+k+8:])
		}
		same := exists && cur.Op == ch.Op && bytes.Equal(cur.Data, ch.Data)
		if same || !exists && ch.Op == store.Delete {
			unchanged++
			continue
		}
		changed++
		if exists {
			g.set(numbered(kindSegment, n.Number, binary.LittleEndian.Uint64(old)), nil)
			if cur.Op == store.Delete {
				n.Tombstones--
			} else {
				n.Live--
			}
		}
		n.Last++
		if ch.Op == store.Delete {
			n.Tombstones++
		} else {
			n.Live++
		}
		n.Bytes += uint64(len(ch.Data))
		var one store.Batch
		one.Append(ch)
		v := append(newValue(one.Size()+64), byte(len(lease.RunID)))
		v = append(v, lease.RunID...)
		v = binary.LittleEndian.AppendUint64(v, uint64(now.UnixMicro()))
		g.put(numbered(kindSegment, n.Number, n.Last), append(v, one.Packed()...))
		g.put(pk, binary.LittleEndian.AppendUint64(newValue(8), n.Last))
	}
	n.UpdatedAt = now
	return changed, unchanged, g.putJSON(ck, n)
}

func (s *Store) Streams(ctx context.Context, connection store.ConnectionID) ([]store.StreamStats, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var all []store.StreamStats
	prefix := key(kindCounters, string(connection), "")
	err = r.scan(prefix, nil, false, func(k, payload []byte) (bool, error) {
		var n counters
		if err := json.Unmarshal(payload, &n); err != nil {
			return false, err
		}
		all = append(all, store.StreamStats{Stream: store.Stream(k[len(prefix):]), Live: n.Live, Tombstones: n.Tombstones, LastVersion: n.Last, Bytes: n.Bytes, UpdatedAt: n.UpdatedAt})
		return true, nil
	})
	return all, err
}

func simpleRecord(stream store.Stream, k, v []byte) store.Record {
	n := int(v[0])
	ch, _ := store.Unpack(v[1+n+8:])
	rec := store.Record{Stream: stream, Key: string(ch.Key), Compound: ch.Compound, EmittedAt: time.UnixMicro(ch.EmittedAt).UTC(),
		IngestedAt: time.UnixMicro(int64(binary.LittleEndian.Uint64(v[1+n:]))).UTC(), Version: lastNumber(k), RunID: store.RunID(v[1 : 1+n]), Deleted: ch.Op == store.Delete}
	if !rec.Deleted {
		rec.Data = append(json.RawMessage(nil), ch.Data...)
	}
	return rec
}

func (s *Store) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	var page store.RecordPage
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return page, err
	}
	defer r.close()
	b, ok, err := r.get(key(kindCounters, string(q.Connection), string(q.Stream)))
	if err != nil || !ok {
		return page, err
	}
	var n counters
	if err := json.Unmarshal(b, &n); err != nil {
		return page, err
	}
	page.Version = n.Last
	if q.After > n.Last {
		return page, store.ErrCursorExpired
	}
	prefix := numbered(kindSegment, n.Number)
	seek := numbered(kindSegment, n.Number, q.After+1)
	if q.Descending {
		seek = numbered(kindSegment, n.Number, q.After-1)
	}
	err = r.scan(prefix, seek, q.Descending, func(k, v []byte) (bool, error) {
		rec := simpleRecord(q.Stream, k, v)
		if rec.Deleted && !q.Deleted {
			return true, nil
		}
		if len(page.Records) == bounded(q.Limit) {
			page.More = true
			return false, nil
		}
		page.Records = append(page.Records, rec)
		return true, ctx.Err()
	})
	return page, err
}

func (s *Store) Record(ctx context.Context, connection store.ConnectionID, stream store.Stream, k string) (store.Record, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return store.Record{}, err
	}
	defer r.close()
	b, ok, err := r.get(key(kindCounters, string(connection), string(stream)))
	if err != nil || !ok {
		return store.Record{}, missing(err, "record")
	}
	var n counters
	if err := json.Unmarshal(b, &n); err != nil {
		return store.Record{}, err
	}
	v, ok, err := r.get(append(numbered(kindPage, n.Number), k...))
	if err != nil || !ok {
		return store.Record{}, missing(err, "record")
	}
	sk := numbered(kindSegment, n.Number, binary.LittleEndian.Uint64(v))
	seg, ok, err := r.get(sk)
	if err != nil || !ok {
		return store.Record{}, missing(err, "record")
	}
	return simpleRecord(stream, sk, seg), nil
}

func (s *Store) Verify(ctx context.Context) error { return ctx.Err() }
