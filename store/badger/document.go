package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A storedDocument is the value under a document's key.
type storedDocument struct {
	Revision  uint64          `json:"r"`
	ExpiresAt *time.Time      `json:"x,omitempty"`
	Data      json.RawMessage `json:"d"`
}

func (d storedDocument) expired(now time.Time) bool {
	return d.ExpiresAt != nil && !now.Before(*d.ExpiresAt)
}

func (d storedDocument) document(kind store.Kind, id string) store.Document {
	out := store.Document{Kind: kind, ID: id, Revision: d.Revision, Data: d.Data}
	if d.ExpiresAt != nil {
		out.ExpiresAt = *d.ExpiresAt
	}
	return out
}

func documentKey(kind store.Kind, id string) []byte { return key(kindDocument, string(kind), id) }

// errDocumentID reports a mistake in the calling program.
var errDocumentID = errors.New("a document wants a kind, and an id of 1 to 512 bytes")

// Write implements store.Store.
func (s *documents) Write(ctx context.Context, writes ...store.Write) error {
	return s.queue.do(ctx, false, func(g *group) error { return writeDocuments(g, s.opts.Now().UTC(), writes) })
}

// writeDocuments checks all writes before it makes the first.
func writeDocuments(g *group, now time.Time, writes []store.Write) error {
	before := make([]storedDocument, len(writes))
	for i, w := range writes {
		if w.Kind == "" || w.ID == "" || len(w.ID) > 512 {
			return errDocumentID
		}
		var d storedDocument
		ok, err := g.getJSON(documentKey(w.Kind, w.ID), &d)
		if err != nil {
			return err
		}
		before[i] = d
		seen := d.Revision
		if !ok || d.expired(now) {
			seen = 0
		}
		if w.If != nil && *w.If != seen {
			return &store.ConflictError{Kind: w.Kind, ID: w.ID, Revision: seen}
		}
	}
	for i, w := range writes {
		k := documentKey(w.Kind, w.ID)
		if at := before[i].ExpiresAt; at != nil {
			g.set(dueKey(*at, w.Kind, w.ID), nil)
		}
		if w.Data == nil {
			if err := g.remove(k); err != nil {
				return err
			}
			continue
		}
		d := storedDocument{Revision: before[i].Revision + 1, Data: w.Data}
		if !w.ExpiresAt.IsZero() {
			at := w.ExpiresAt.UTC()
			d.ExpiresAt = &at
			g.put(dueKey(at, w.Kind, w.ID), newValue(0))
		}
		if err := g.putJSON(k, d); err != nil {
			return err
		}
	}
	return nil
}

// Document implements store.Store.
func (s *documents) Document(ctx context.Context, kind store.Kind, id string) (store.Document, error) {
	d, err := oneJSON[storedDocument](ctx, s.disk, documentKey(kind, id), "%s", kind)
	if err != nil {
		return store.Document{}, err
	}
	if d.expired(s.opts.Now()) {
		return store.Document{}, fmt.Errorf("%s: %w", kind, store.ErrNotFound)
	}
	return d.document(kind, id), nil
}

// Documents implements store.Store.
func (s *documents) Documents(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	root := documentKey(q.Kind, "")
	prefix := documentKey(q.Kind, q.Prefix)
	var seek []byte
	if q.After != "" {
		seek = documentKey(q.Kind, q.After)
	}
	now := s.opts.Now()
	var out []store.Document
	err = r.scan(prefix, seek, q.Descending, func(k, payload []byte) (bool, error) {
		id := string(k[len(root):])
		if id == q.After {
			return true, ctx.Err()
		}
		var d storedDocument
		if err := json.Unmarshal(payload, &d); err != nil {
			return false, store.Corrupt("key %.40q: %v", k, err)
		}
		if !d.expired(now) {
			out = append(out, d.document(q.Kind, id))
		}
		return len(out) < bounded(q.Limit), ctx.Err()
	})
	return out, err
}

// dueKey returns a key that sorts documents by expiry, so that a sweep only reads those that are due.
func dueKey(at time.Time, kind store.Kind, id string) []byte {
	return key(kindDue, string(dueTime(at)), string(kind), id)
}

func dueTime(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())^1<<63)
}

// dueOf decodes a dueKey.
func dueOf(k []byte) (kind store.Kind, id string, ok bool) {
	const name = 1 + 2 + 8 // where the kind begins, with its length
	if len(k) < name+2 {
		return "", "", false
	}
	n := name + 2 + int(binary.BigEndian.Uint16(k[name:]))
	if len(k) < n {
		return "", "", false
	}
	return store.Kind(k[name+2 : n]), string(k[n:]), true
}

// Sweep implements store.Store.
func (s *documents) Sweep(ctx context.Context) error {
	now := s.opts.Now()
	end := append(key(kindDue, string(dueTime(now)), ""), 0xFF) // behind all keys of this microsecond
	return s.eraser.inSteps(ctx, func(r reader, after []byte, most int) [][]byte {
		due := r.listKeys([]byte{kindDue}, after, false, most)
		n, _ := slices.BinarySearchFunc(due, end, bytes.Compare)
		return due[:n]
	}, func(g *group, k []byte) error { return sweep(g, k, now) })
}

// sweep deletes the document that is due under k, unless it was written again.
func sweep(g *group, k []byte, now time.Time) error {
	kind, id, ok := dueOf(k)
	if !ok {
		return store.Corrupt("key %.40q names no document", k)
	}
	var d storedDocument
	ok, err := g.getJSON(documentKey(kind, id), &d)
	if err != nil {
		return err
	}
	mine := ok && d.ExpiresAt != nil && bytes.Equal(dueKey(*d.ExpiresAt, kind, id), k)
	if mine && !d.expired(now) {
		return nil
	}
	g.set(k, nil)
	if !mine {
		return nil
	}
	return g.remove(documentKey(kind, id))
}
