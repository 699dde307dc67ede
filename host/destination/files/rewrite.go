package files

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/sluicehost/sluice/host/destination"
)

// Sizes of parts in rows and bytes, and the number of parts. A changed row has its part rewritten: small parts make
// changes fast, few parts make reading fast.
const (
	minRows  = 20_000
	maxRows  = 250_000
	maxBytes = 256 << 20
	maxParts = 64
	fewParts = 48 // number of parts at which merging stops
)

// A rewriting writes the parts that a batch changes or adds.
type rewriting struct {
	*Sink
	batch  *destination.Batch
	was    table  // the table before the batch
	number uint64 // of the next part

	keep  []part           // earlier parts that stay
	fresh []part           // new parts, under hidden names
	syncs []chan error     // results of syncing the new parts
	sets  map[uint64]place // of the new parts, by number

	hashes  []uint64                    // of the keys of the batch
	changed map[string]*destination.Row // rows of the batch by key, without those already written
	perPart int64                       // maximum rows
	out     *output
}

// run writes all new parts.
func (w *rewriting) run(ctx context.Context) error {
	w.sets = map[uint64]place{}
	rows := w.batch.Rows
	w.hashes = make([]uint64, len(rows))
	for i := range rows {
		w.hashes[i] = maphash.String(seed, w.format.Key(rows[i].Key))
	}
	redo, err := w.choose(ctx)
	if err != nil {
		return err
	}
	if len(redo) > 0 {
		w.changed = make(map[string]*destination.Row, len(rows))
		for i := range rows {
			w.changed[w.format.Key(rows[i].Key)] = &rows[i]
		}
	}
	for _, p := range redo {
		if err := w.copyPart(ctx, p); err != nil {
			return fmt.Errorf("rewrite %s/%s: %w", w.was.Holding.Table, p.Name, err)
		}
	}
	for i := range rows {
		if i%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.put(&rows[i], w.hashes[i]); err != nil {
			return err
		}
	}
	if w.out == nil && len(w.fresh) == 0 && len(w.keep) == 0 { // a table without rows needs a file with its columns
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.end()
}

// choose splits the parts into those that stay and those to be rewritten, because a row changes, the columns change, or
// there are too many parts.
func (w *rewriting) choose(ctx context.Context) (redo []part, err error) {
	reshaped := w.batch.From != nil && !w.format.Fits(w.was.Holding.Shape, w.batch.To.Shape)
	hit := map[uint64]bool{}
	if !reshaped && !w.batch.New && len(w.hashes) > 0 {
		if hit, err = w.hit(ctx, w.was, w.hashes); err != nil {
			return nil, err
		}
	}
	rows, total := int64(len(w.batch.Rows)), int64(len(w.batch.Rows))
	var rest []part
	for _, p := range w.was.Parts {
		total += p.Rows
		if reshaped || hit[p.Number] {
			redo = append(redo, p)
			rows += p.Rows
			continue
		}
		rest = append(rest, p)
	}
	slices.SortStableFunc(rest, func(a, b part) int { return cmp.Compare(a.Rows, b.Rows) })
	target := min(max(total/fewParts, minRows), maxRows)
	take := func() {
		redo, rows, rest = append(redo, rest[0]), rows+rest[0].Rows, rest[1:]
	}
	if rows > 0 { // parts that are small compared with what is written anyway cost little
		for len(rest) > 0 && rest[0].Rows <= 4*rows && rows+rest[0].Rows <= target {
			take()
		}
	}
	large := 0
	for _, p := range rest {
		if !small(p) {
			large++
		}
	}
	if most := max(maxParts, large+maxParts/4); len(rest)+parts(rows, target) > most {
		target = maxRows
		for len(rest) > 0 && small(rest[0]) && len(rest)+parts(rows, target) > min(most-maxParts/4, fewParts) {
			take()
		}
	}
	w.keep, w.perPart = rest, max(1, (rows+int64(parts(rows, target))-1)/int64(max(1, parts(rows, target))))
	slices.SortFunc(redo, func(a, b part) int { return cmp.Compare(a.Name, b.Name) })
	return redo, nil
}

func small(p part) bool { return p.Rows < maxRows/2 && p.Bytes < maxBytes/2 }

// parts returns how many parts of at most each rows are needed.
func parts(rows, each int64) int { return int((rows + each - 1) / each) }

// parts returns the parts of the table after the batch.
func (w *rewriting) parts() []part {
	all := slices.Concat(w.keep, w.fresh)
	slices.SortFunc(all, func(a, b part) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// copyPart writes what remains of a part.
func (w *rewriting) copyPart(ctx context.Context, p part) error {
	rows := int64(0)
	err := w.each(w.was, p, false, func(r Reader) error {
		if rows++; rows%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key, version := r.Key(), r.Version()
		change := w.changed[string(key)]
		live := r.Live()
		switch mode := w.batch.To.Mode; {
		case change == nil:
		case mode == destination.Current:
			return nil
		case mode == destination.History && !live:
			change = nil
		case mode == destination.History:
			live = false
		case !change.Deleted:
			return nil
		default:
			version = change.Version
			delete(w.changed, string(key)) // its row is written now
		}
		if err := w.roll(version); err != nil {
			return err
		}
		if live {
			w.out.hashes = append(w.out.hashes, maphash.Bytes(seed, key))
		}
		return w.out.Copy(r, change)
	})
	if err == nil && rows != p.Rows {
		err = ErrLost
	}
	return err
}

// put writes a row of the batch, if it needs one.
func (w *rewriting) put(r *destination.Row, hash uint64) error {
	if r.Deleted {
		if w.batch.To.Mode != destination.CurrentDeleted || w.changed != nil && w.changed[w.format.Key(r.Key)] == nil {
			return nil
		}
	}
	if err := w.roll(r.Version); err != nil {
		return err
	}
	w.out.hashes = append(w.out.hashes, hash)
	return w.out.Put(r)
}

// An output is a part being written.
type output struct {
	Writer
	part   part
	file   *os.File
	buffer *bufio.Writer
	hashes []uint64
	size   counter
}

// A counter counts the bytes written to a file.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

// roll makes room for one more row, in a new part if necessary.
func (w *rewriting) roll(version uint64) error {
	if w.out != nil && (w.out.part.Rows >= w.perPart || w.out.size.n >= maxBytes) {
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.out == nil {
		if err := w.begin(); err != nil {
			return err
		}
		w.out.part.From = version
	}
	p := &w.out.part
	p.From, p.To, p.Rows = min(p.From, version), max(p.To, version), p.Rows+1
	return nil
}

// begin begins the next part.
func (w *rewriting) begin() error {
	name := path.Join(w.batch.To.Table, tmpName(w.number))
	f, err := w.root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w.out = &output{part: part{Number: w.number}, file: f}
	w.number++
	w.out.size.Writer = disk{f}
	w.out.buffer = bufio.NewWriterSize(&w.out.size, 1<<18)
	w.out.Writer, err = w.format.Create(w.out.buffer, Table{w.batch.To.Mode, w.batch.To.Shape})
	if err != nil {
		w.out = nil
		return errors.Join(err, f.Close())
	}
	return nil
}

// end completes the part being written, if any.
func (w *rewriting) end() error {
	o := w.out
	if o == nil {
		return nil
	}
	w.out = nil
	if err := errors.Join(o.Writer.Close(), o.buffer.Flush(), hook("written")); err != nil {
		return errors.Join(err, o.file.Close())
	}
	synced := make(chan error, 1)
	w.syncs = append(w.syncs, synced)
	go func() { synced <- errors.Join(o.file.Sync(), o.file.Close()) }() // concurrently with the next part
	o.part.Bytes, o.part.Name = o.size.n, partName(o.part, w.format.Name())
	w.fresh = append(w.fresh, o.part)
	if len(o.hashes) > 0 {
		set, err := w.index.add(o.hashes)
		if err != nil {
			return err
		}
		w.sets[o.part.Number] = set
	}
	return hook("part")
}

// wait waits until the new parts are durable.
func (w *rewriting) wait() (err error) {
	for _, synced := range w.syncs {
		err = errors.Join(err, <-synced)
	}
	w.syncs = nil
	return err
}

// discard removes what was written.
func (w *rewriting) discard() {
	_ = w.wait() // the parts are removed in any case
	if w.out != nil {
		_ = w.out.Writer.Close() // ends its goroutines
		_ = w.out.file.Close()
	}
	for n := w.Sink.m.Next; n < w.number; n++ {
		_ = w.root.Remove(path.Join(w.batch.To.Table, tmpName(n))) // otherwise the next start does
	}
	if w.batch.From == nil {
		_ = w.root.Remove(w.batch.To.Table)
	}
}

// ErrLost reports that a file does not match the manifest.
var ErrLost = errors.New("the file is not as Sluice wrote it; rebuild the destination")

// each calls do with a reader positioned at each row of a part.
func (s *Sink) each(t table, p part, keys bool, do func(Reader) error) error {
	f, err := s.root.Open(path.Join(t.Holding.Table, p.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrLost
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || fi.Size() != p.Bytes {
		return errors.Join(err, ErrLost)
	}
	r, err := s.format.Open(f, Table{t.Holding.Mode, t.Holding.Shape}, keys)
	if err != nil {
		return err
	}
	for {
		if err := r.Next(); err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		if err := do(r); err != nil {
			return err
		}
	}
}

// hit returns, by number, whether a part may have one of the hashes.
func (s *Sink) hit(ctx context.Context, t table, hashes []uint64) (map[uint64]bool, error) {
	of, out := s.index.of(t.StreamID), map[uint64]bool{}
	hashes = slices.Sorted(slices.Values(hashes)) // so that a set is read in the order of memory
	for _, p := range t.Parts {
		set, ok := of[p.Number]
		if !ok {
			keys, err := s.keys(ctx, t, p)
			if err == nil {
				set, err = s.index.add(keys)
			}
			if err != nil {
				return nil, fmt.Errorf("read %s/%s: %w", t.Holding.Table, p.Name, err)
			}
			of[p.Number] = set
		}
		var err error
		if out[p.Number], err = s.index.has(set, hashes); err != nil {
			s.index.forget()
			return nil, fmt.Errorf("read the keys of %s/%s: %w", t.Holding.Table, p.Name, err)
		}
	}
	return out, nil
}

// keys returns the hashes of the keys in a part.
func (s *Sink) keys(ctx context.Context, t table, p part) ([]uint64, error) {
	hashes := make([]uint64, 0, min(max(0, p.Rows), 4*maxRows))
	err := s.each(t, p, true, func(r Reader) error {
		if len(hashes)%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if r.Live() {
			hashes = append(hashes, maphash.Bytes(seed, r.Key()))
		}
		return nil
	})
	return hashes, err
}
