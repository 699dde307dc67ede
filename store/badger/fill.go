package badger

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

var (
	_ store.Loader = (*Store)(nil)
	_ store.Copier = (*image)(nil)
	_ store.Filler = (*filler)(nil)
)

// A filler passes items to the committer in batches. Each batch names the place up to which the store is filled before
// and after it, so none takes effect without its predecessor.
type filler struct {
	s        *Store
	source   string
	at       store.Place // up to which items were submitted
	items    []store.Item
	end      store.Place // place of the last item taken, whether it is in items or not
	bytes    int64
	bulk     int64 // bytes of records and other bulk
	inflight []*store.Receipt
	content  *staged // the file being put together
	of       []byte  // its key: connection and digest
	pieces   uint64  // of it so far
}

// Fill implements store.Imager.
func (s *Store) Fill(ctx context.Context, source string) (store.Filler, store.Place, error) {
	if err := s.writable(); err != nil {
		return nil, store.Place{}, err
	}
	f := &filler{s: s, source: source}
	d, err := s.Document(ctx, store.Copying, store.CopyNote)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if s.visible.newest() != 0 {
			return nil, store.Place{}, store.ErrNotEmpty
		}
		return f, store.Place{}, nil
	case err != nil:
		return nil, store.Place{}, err
	}
	var note store.Copied
	if err := json.Unmarshal(d.Data, &note); err != nil {
		return nil, store.Place{}, store.Corrupt("note of a copy: %v", err)
	}
	if note.Source != source {
		return nil, store.Place{}, &store.OtherCopyError{}
	}
	f.at, f.end = note.Place, note.Place
	return f, note.Place, nil
}

// Put implements store.Filler.
func (f *filler) Put(ctx context.Context, i store.Item) error {
	if i.Kind == store.PieceItem {
		return f.piece(ctx, i)
	}
	if err := f.endContent(ctx); err != nil {
		return err
	}
	f.end = store.Place{Kind: i.Kind, Key: i.Key}
	i.Value = append([]byte(nil), i.Value...)
	return f.add(ctx, i)
}

// add queues an item and submits the batch once it is large enough.
func (f *filler) add(ctx context.Context, i store.Item) error {
	f.items = append(f.items, i)
	if n := int64(len(i.Key) + len(i.Value)); i.Kind == store.RecordItem {
		f.bulk += n
		f.bytes += 16 // its share of the place of a segment
	} else if f.bytes += n + 2*writeOverhead; n >= bulkValue {
		f.bytes, f.bulk = f.bytes-n, f.bulk+n
	}
	if f.bytes < opBytes-bulkValue && f.bulk < loadBulk {
		return nil
	}
	return f.send(ctx)
}

// send submits the queued items.
func (f *filler) send(ctx context.Context) error {
	if len(f.items) == 0 {
		return nil
	}
	if err := f.s.writable(); err != nil {
		return err
	}
	if len(f.inflight) == loadInflight {
		_, err := f.inflight[0].Result()
		f.inflight = f.inflight[1:]
		if err != nil {
			return err
		}
	}
	items, before, after := f.items, f.at, f.end
	f.items, f.at = nil, after
	op := func(g *group) error {
		if err := f.moveOn(g, before, after); err != nil {
			return err
		}
		return g.c.fill(g, items)
	}
	receipt, settle := store.NewReceipt()
	bytes := f.bytes + f.bulk
	f.bytes, f.bulk = 0, 0
	if err := f.s.queue.push(ctx, &item{op: op, bytes: bytes, settle: settle}); err != nil {
		return err
	}
	f.inflight = append(f.inflight, receipt)
	return nil
}

// moveOn records that the store is filled up to after, provided that it was filled up to before.
func (f *filler) moveOn(g *group, before, after store.Place) error {
	k := documentKey(store.Copying, store.CopyNote)
	var d storedDocument
	ok, err := g.getJSON(k, &d)
	if err != nil {
		return err
	}
	var note store.Copied
	if ok {
		if err := json.Unmarshal(d.Data, &note); err != nil {
			return store.Corrupt("note of a copy: %v", err)
		}
	}
	if note.Kind != before.Kind || string(note.Key) != string(before.Key) {
		return errors.New("items before these were not written")
	}
	if d.Data, err = json.Marshal(store.Copied{Source: f.source, Place: after}); err != nil {
		return err
	}
	d.Revision++
	return g.putJSON(k, d)
}

// Flush implements store.Filler.
func (f *filler) Flush(ctx context.Context) error {
	err := f.endContent(ctx)
	if err == nil {
		err = f.send(ctx)
	}
	for _, receipt := range f.inflight { // wait for all that was submitted, even after an error
		_, failed := receipt.Result()
		err = errors.Join(err, failed)
	}
	f.inflight = nil
	return err
}

// Finish implements store.Filler.
func (f *filler) Finish(ctx context.Context) error {
	if err := f.Flush(ctx); err != nil {
		return err
	}
	return f.s.queue.do(ctx, false, func(g *group) error { return g.remove(documentKey(store.Copying, store.CopyNote)) })
}

// Close implements store.Filler.
func (f *filler) Close() {
	if f.content != nil {
		f.content.Discard()
	}
	for _, receipt := range f.inflight {
		_, _ = receipt.Result() // the caller has given up
	}
	f.inflight = nil
}

// piece takes the next piece of a file. endContent verifies the whole.
func (f *filler) piece(ctx context.Context, i store.Item) error {
	names, n, err := i.Numbered(3)
	if err != nil {
		return err
	}
	of := store.ItemKey(names...)
	if f.content == nil || string(f.of) != string(of) {
		if err := f.endContent(ctx); err != nil {
			return err
		}
		if _, err := store.ParseDigest(names[1]); err != nil {
			return store.Corrupt("piece %.80q: %v", i.Key, err)
		}
		c, err := f.s.StageFile(ctx, store.ConnectionID(names[0]))
		if err != nil {
			return err
		}
		f.content, f.of, f.pieces = c.(*staged), of, 0
	}
	if n != f.pieces || len(i.Value) > store.PieceBytes {
		return store.Corrupt("piece %d of file %s comes as piece %d", n, names[1], f.pieces)
	}
	f.pieces++
	f.end = store.Place{Kind: i.Kind, Key: i.Key}
	_, err = f.content.Write(i.Value)
	return err
}

// endContent verifies the file whose pieces have arrived and adds it to the store.
func (f *filler) endContent(ctx context.Context) error {
	c := f.content
	if c == nil {
		return nil
	}
	f.content = nil
	d, _, err := c.Finish()
	if err != nil {
		return err
	}
	last := store.Item{Kind: store.PieceItem, Key: f.of}
	names, err := last.Parts(2)
	if err == nil && names[1] != string(d) {
		err = store.Corrupt("file %s has another content", names[1])
	}
	if err == nil && c.long != nil {
		last.Value, err = json.Marshal(c.at)
		last.Key = fileKey(kindLocation, store.ConnectionID(names[0]), d)
	} else if err == nil {
		last.Value, last.Key = c.short, fileKey(kindContent, store.ConnectionID(names[0]), d)
	}
	if err != nil {
		c.finished = true
		c.Discard()
		return err
	}
	return f.add(ctx, last)
}

// fill writes items to a group.
func (c *committer) fill(g *group, items []store.Item) error {
	for len(items) > 0 {
		if items[0].Kind == store.RecordItem {
			rest, err := c.fillRecords(g, items)
			if err != nil {
				return err
			}
			items = rest
			continue
		}
		if err := c.fillOne(g, items[0]); err != nil {
			return err
		}
		items = items[1:]
	}
	return nil
}

// fillOne writes an item other than a record. The key of a PieceItem is already the one under which it is stored.
func (c *committer) fillOne(g *group, i store.Item) error {
	if kind, ok := plain[i.Kind]; ok {
		g.store(append([]byte{kind}, i.Key...), i.Value)
		if i.Kind == store.HeldItem {
			return c.fillHeld(g, i)
		}
		return nil
	}
	switch i.Kind {
	case store.PieceItem:
		g.store(i.Key, i.Value)
		return nil
	case store.DocumentItem:
		return fillDocument(g, i)
	case store.FenceItem:
		var n uint64
		err := i.Decode(&n)
		g.put(key(kindFence, string(i.Key)), binary.LittleEndian.AppendUint64(newValue(8), n))
		return err
	case store.RunItem:
		return fillRun(g, i)
	case store.LeaseItem:
		g.store(key(kindLease, string(i.Key)), i.Value)
		return nil
	case store.StreamItem:
		return c.fillStream(g, i)
	case store.FileItem:
		return fillFile(g, i)
	}
	return store.Corrupt("an item has kind %d", i.Kind)
}

func fillDocument(g *group, i store.Item) error {
	var v store.DocumentValue
	names, err := i.Parts(2)
	if err == nil {
		err = i.Decode(&v)
	}
	if err != nil {
		return err
	}
	if names[0] == string(store.Copying) {
		return store.Corrupt("a document of kind %s is no item", names[0])
	}
	d := storedDocument{Revision: v.Revision, Data: v.Data}
	if at := v.ExpiresAt(); !at.IsZero() {
		d.ExpiresAt = &at
		g.put(dueKey(at, store.Kind(names[0]), names[1]), newValue(0))
	}
	return g.putJSON(append([]byte{kindDocument}, i.Key...), d)
}

func fillRun(g *group, i store.Item) error {
	var v store.RunValue
	var r store.Run
	err := i.Decode(&v)
	if err == nil {
		err = store.Item{Kind: i.Kind, Key: i.Key, Value: v.Run}.Decode(&r)
	}
	if err != nil {
		return err
	}
	if string(r.ID) != string(i.Key) {
		return store.Corrupt("run %.40q is under key %.40q", r.ID, i.Key)
	}
	g.store(key(kindRun, string(r.ID)), v.Run)
	putHead(g, r.ID, store.RunHead{Next: v.Next, Ended: v.Ended})
	g.put(key(kindRunOf, string(r.ConnectionID), string(r.ID)), newValue(0))
	return nil
}

func fillFile(g *group, i store.Item) error {
	var v store.FileValue
	names, err := i.Parts(2)
	if err == nil {
		err = i.Decode(&v)
	}
	if err != nil {
		return err
	}
	c := store.ConnectionID(names[0])
	if string(v.Digest) != names[1] || v.Refs < 0 || v.Size < 0 {
		return store.Corrupt("file %.80q cannot be", i.Key)
	}
	if v.Refs == 0 {
		g.put(fileKey(kindUnreferenced, c, v.Digest), newValue(0))
	}
	h := fileRefs{g: g, connection: c}
	if err := h.count(1, v.Size); err != nil {
		return err
	}
	return g.putJSON(fileKey(kindFileOf, c, v.Digest), fileOf{Refs: v.Refs, File: v.File})
}

// fillStream creates a stream. fillRecords advances its counters.
func (c *committer) fillStream(g *group, i store.Item) error {
	var v store.StreamValue
	names, err := i.Parts(2)
	if err == nil {
		err = i.Decode(&v)
	}
	if err != nil {
		return err
	}
	st, err := c.stream(g, store.ConnectionID(names[0]), store.Stream(names[1]))
	if err != nil {
		return err
	}
	st.counters.bytes, st.counters.updated = v.Bytes, v.Updated
	st.counters.put(g, st.countersKey)
	return nil
}

// fillHeld makes the next commits to a stream look for the files of what they replace.
func (c *committer) fillHeld(g *group, i store.Item) error {
	names, err := i.Parts(3)
	if err != nil {
		return err
	}
	st, err := c.stream(g, store.ConnectionID(names[0]), store.Stream(names[1]))
	if err == nil {
		st.holds = true
	}
	return err
}

// maxHoles bounds how many versions an image may leave out between two current records.
const maxHoles = 1 << 34

// fillRecords writes the records of one stream at the beginning of items and returns the rest.
func (c *committer) fillRecords(g *group, items []store.Item) (rest []store.Item, err error) {
	names, _, err := items[0].Numbered(3)
	if err != nil {
		return nil, err
	}
	st, err := c.stream(g, store.ConnectionID(names[0]), store.Stream(names[1]))
	if err != nil {
		return nil, err
	}
	g.undo = append(g.undo, func() { c.forget(streamKey{st.connection, st.name}) }) // so that it is loaded again
	var pack bulk.Packer
	holes := map[uint64]bool{} // chunks with versions left out
	for rest = items; len(rest) > 0 && rest[0].Kind == store.RecordItem; rest = rest[1:] {
		of, version, err := rest[0].Numbered(3)
		if err != nil {
			return nil, err
		}
		if of[0] != names[0] || of[1] != names[1] {
			break
		}
		e := bulk.Entry{Version: version}
		if e.Ingested, e.Run, e.Change, e.Raw, err = rest[0].Record(); err != nil {
			return nil, err
		}
		if version <= st.counters.last || version-st.counters.last > maxHoles {
			return nil, store.Corrupt("version %d of %s follows on %d", version, st.name, st.counters.last)
		}
		st.leaveOut(g, st.counters.last+1, version, holes)
		c.fillRow(st, e)
		pack.Add(e)
	}
	first, segment := pack.Segment()
	g.putPayload(numbered(kindSegment, st.counters.number, first), segment)
	st.fresh += int64(len(segment))
	for chunk := range holes {
		g.put(numbered(kindDeadChunk, st.counters.number, chunk), st.dead[chunk].encode())
		st.dead[chunk].dirty = false
	}
	st.counters.put(g, st.countersKey)
	last := st.counters.last
	g.publish = append(g.publish, func() { st.shown = last })
	return rest, c.maintain(g, st)
}

func (c *committer) fillRow(st *stream, e bulk.Entry) {
	row, n := c.hash.Row(e.Change, e.Version), &st.counters
	st.rows.Lock()
	st.mem.Put(row)
	st.rows.Unlock()
	n.last = e.Version
	n.sum.add(row.E1, row.E2)
	if row.Deleted() {
		n.tombstones++
	} else {
		n.live++
	}
}

// leaveOut marks the versions from a up to but not including b as superseded at their origin and never stored here.
func (st *stream) leaveOut(g *group, a, b uint64, holes map[uint64]bool) {
	for v := a; v < b; {
		chunk := v >> chunkShift
		end := min(b, (chunk+1)<<chunkShift)
		if whole := end-v == chunkVersions || chunk == 0 && v == 1 && end == chunkVersions; whole {
			st.dead[chunk] = gone
			g.put(numbered(kindDeadChunk, st.counters.number, chunk), gone.encode())
			v = end
			continue
		}
		for ; v < end; v++ {
			st.dead.set(v).purged++
		}
		ch := st.dead[chunk]
		if chunk == 0 && ch.purged == chunkVersions-1 {
			ch.purged++ // there is no version 0
		}
		if ch.purged == chunkVersions {
			st.dead[chunk] = gone
			g.put(numbered(kindDeadChunk, st.counters.number, chunk), gone.encode())
			delete(holes, chunk)
		} else {
			holes[chunk] = true
		}
	}
}
