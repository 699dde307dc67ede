package badger

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// plain maps item kinds to key kinds with the same keys and values.
var plain = map[store.ItemKind]byte{
	store.ConnectorItem: kindConnector, store.PinItem: kindPin, store.ConnectionItem: kindConnection,
	store.EventItem: kindEvent, store.StagedItem: kindStaged, store.QuestionItem: kindPending, store.StateItem: kindState,
	store.GapItem: kindGap, store.HeldItem: kindHeld,
}

// keyed maps item kinds to key kinds with the same keys, whose values itemValue converts.
var keyed = map[store.ItemKind]byte{
	store.DocumentItem: kindDocument, store.FenceItem: kindFence, store.RunItem: kindRun, store.LeaseItem: kindLease,
	store.StreamItem: kindCounters, store.FileItem: kindFileOf,
}

// Items implements store.Image.
func (i *image) Items(ctx context.Context, kind store.ItemKind, after []byte, fn func(store.Item) error) error {
	r, err := i.snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	switch kind {
	case store.RecordItem:
		return r.recordItems(ctx, after, fn)
	case store.PieceItem:
		return r.pieceItems(ctx, after, fn)
	}
	prefix, ok := plain[kind]
	if !ok {
		prefix = keyed[kind]
	}
	return r.itemsOf(ctx, prefix, after, func(k, payload []byte) error {
		if string(k) == string(documentKey(store.Copying, store.CopyNote)) {
			return nil
		}
		value, err := r.itemValue(kind, k[1:], payload)
		if err != nil {
			return err
		}
		item, err := store.NewItem(kind, value, k[1:])
		if err != nil {
			return err
		}
		return fn(item)
	})
}

// itemsOf calls fn for all keys of a kind behind after, which is a key without its kind.
func (r *snapshot) itemsOf(ctx context.Context, kind byte, after []byte, fn func(k, payload []byte) error) error {
	return r.scan([]byte{kind}, append([]byte{kind}, after...), false, func(k, payload []byte) (bool, error) {
		if len(after) > 0 && string(k[1:]) == string(after) {
			return true, nil
		}
		if err := r.interrupted(ctx); err != nil {
			return false, err
		}
		return true, fn(k, payload)
	})
}

// itemValue returns what the item's JSON value is made from.
func (r *snapshot) itemValue(kind store.ItemKind, k, payload []byte) (any, error) {
	read := func(v any) error { return store.Item{Kind: kind, Key: k, Value: payload}.Decode(v) }
	switch kind {
	case store.DocumentItem:
		var d storedDocument
		if err := read(&d); err != nil {
			return nil, err
		}
		v := store.DocumentValue{Revision: d.Revision, Data: d.Data}
		if d.ExpiresAt != nil {
			v.Expires = d.ExpiresAt.UnixMicro()
		}
		return v, nil
	case store.FenceItem:
		if len(payload) != 8 {
			return nil, store.Corrupt("fence %.40q has %d bytes", k, len(payload))
		}
		return binary.LittleEndian.Uint64(payload), nil
	case store.RunItem:
		head, _, err := getHead(r.get, store.RunID(k))
		return store.RunValue{Next: head.Next, Ended: head.Ended, Run: payload}, err
	case store.LeaseItem:
		var l store.Lease
		err := read(&l)
		l.ExpiresAt = l.ExpiresAt.UTC().Truncate(time.Microsecond)
		return l, err
	case store.StreamItem:
		n, err := decodeCounters(payload)
		return store.StreamValue{Live: n.live, Tombstones: n.tombstones, Last: n.last, Bytes: n.bytes, Updated: n.updated},
			err
	case store.FileItem:
		var v store.FileValue
		return v, read(&v)
	}
	return json.RawMessage(payload), nil
}

// recordItems calls fn for the current records and tombstones of all streams, by version. In the order of items, and not
// in that of the counters' keys, a stream with a shorter name comes before those of its connection with a longer one.
func (r *snapshot) recordItems(ctx context.Context, after []byte, fn func(store.Item) error) error {
	from, version := "", uint64(0)
	if after != nil {
		names, n, err := store.Item{Kind: store.RecordItem, Key: after}.Numbered(3)
		if err != nil {
			return err
		}
		from, version = string(store.ItemKey(append(names, "")...)), n
	}
	all := map[string]counters{} // by the beginning of the keys of a stream's records
	err := r.scan([]byte{kindCounters}, nil, false, func(k, payload []byte) (bool, error) {
		connection, ok := firstPart(k)
		n, err := decodeCounters(payload)
		if err == nil && !ok {
			err = store.Corrupt("key %.40q names no stream", k)
		}
		if of := string(store.ItemKey(connection, lastPart(k), "")); of >= from {
			all[of] = n
		}
		return true, err
	})
	if err != nil {
		return err
	}
	for _, of := range slices.Sorted(maps.Keys(all)) {
		behind := uint64(0)
		if of == from {
			behind = version
		}
		err := r.walk(all[of], behind, false, func(e bulk.Entry) (bool, error) {
			if err := r.interrupted(ctx); err != nil {
				return false, err
			}
			return true, fn(store.Item{
				Kind: store.RecordItem, Key: append([]byte(of), store.ItemNumber(e.Version)...),
				Value: store.RecordValue(e.Ingested, e.Run, e.Raw),
			})
		})
		if err != nil {
			names, _ := store.Item{Kind: store.RecordItem, Key: []byte(of)}.Parts(3)
			return damaged(err, store.Stream(names[1]))
		}
	}
	return nil
}

// pieceItems calls fn for the contents of all files in pieces. The digest of a content is checked at its end.
func (r *snapshot) pieceItems(ctx context.Context, after []byte, fn func(store.Item) error) error {
	from, next := []byte(nil), uint64(0)
	if after != nil {
		names, n, err := store.Item{Kind: store.PieceItem, Key: after}.Numbered(3)
		if err != nil {
			return err
		}
		from, next = store.ItemKey(names...), n+1
	}
	return r.scan([]byte{kindFileOf}, append([]byte{kindFileOf}, from...), false, func(k, payload []byte) (bool, error) {
		c, d, ok := fileNamed(k)
		var f fileOf
		if err := json.Unmarshal(payload, &f); err != nil || !ok || f.Digest != d {
			return false, store.Corrupt("key %.40q holds no file", k)
		}
		content, err := r.s.content(r.reader, c, f)
		if err != nil {
			return false, err
		}
		defer content.Close()
		p := pieceSplitter{key: k[1:], fn: fn}
		if from != nil && string(k[1:]) == string(from) {
			p.skip = next
		}
		err = checkContent(ctx, content, d, p.add)
		if err == nil && (p.n == 0 || len(p.piece) > 0) { // an empty content is one piece, too
			err = p.end()
		}
		return true, err
	})
}

// A pieceSplitter splits a content into items.
type pieceSplitter struct {
	key     []byte // connection and digest
	fn      func(store.Item) error
	piece   []byte
	n, skip uint64 // pieces made, and how many to skip
}

// add adds a block and passes a piece on once there are enough.
func (p *pieceSplitter) add(b []byte) error {
	if p.piece = append(p.piece, b...); len(p.piece) < store.PieceBytes {
		return nil
	}
	return p.end()
}

func (p *pieceSplitter) end() error {
	b, n := p.piece, p.n
	p.piece, p.n = p.piece[:0], n+1
	if n < p.skip {
		return nil
	}
	names, err := store.Item{Kind: store.PieceItem, Key: p.key}.Parts(2)
	if err != nil {
		return err
	}
	return p.fn(store.Item{Kind: store.PieceItem, Key: store.ItemKey(append(names, store.ItemNumber(n))...), Value: b})
}
