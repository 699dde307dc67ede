package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// maxKnown keeps a cursor below the host's 256 KiB.
const maxKnown = 13_000

// A cursor says what a stream held after a run: for every record its key and a
// digest of its content. So the next run emits what changed, deletes what is
// gone, and need not even read the files while Stamp and Shape are the same.
type cursor struct {
	Shape string `json:"shape"` // of scope and settings
	Stamp string `json:"stamp"` // of the files, as the file system has them
	Known string `json:"known"` // base64 of entries of 14 bytes, sorted
}

// A digest is the start of a SHA-256 of a record's content.
type digest [4]byte

const entrySize = len(key{}) + len(digest{})

// unpack returns the records of a cursor. One that cannot be read knows none.
func (c cursor) unpack() map[key]digest {
	b, err := base64.StdEncoding.DecodeString(c.Known)
	if err != nil || len(b)%entrySize != 0 {
		return nil
	}
	known := make(map[key]digest, len(b)/entrySize)
	for e := range slices.Chunk(b, entrySize) {
		known[key(e[:len(key{})])] = digest(e[len(key{}):])
	}
	return known
}

// pack packs records into a cursor, and reports whether all of them fit.
func pack(known map[key]digest) (packed string, whole bool) {
	entries := make([][]byte, 0, len(known))
	for k, d := range known {
		entries = append(entries, append(slices.Clone(k[:]), d[:]...))
	}
	slices.SortFunc(entries, bytes.Compare)
	whole = len(entries) <= maxKnown
	entries = entries[:min(len(entries), maxKnown)]
	return base64.StdEncoding.EncodeToString(bytes.Join(entries, nil)), whole
}

// An inventory brings one stream up to date with the files.
type inventory struct {
	*stream
	shape string
	last  cursor
	known map[key]digest // of the last run
	now   map[key]digest
}

// openInventory returns the inventory of a stream, or nil when it is not in
// scope.
func openInventory(run *guest.Run, name string, settings any) *inventory {
	s := openStream(run, name)
	if s == nil {
		return nil
	}
	v := &inventory{stream: s, shape: shapeOf(s.shape(), settings), now: map[key]digest{}}
	if ok, err := run.State(name, &v.last); err != nil || !ok {
		v.last = cursor{} // none, or of another version
	}
	v.known = v.last.unpack()
	return v
}

func shapeOf(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return short(sum[:])[:16]
}

// current reports whether nothing can have changed since the last run.
func (v *inventory) current(stamp string) bool {
	return v == nil || v.run.Incremental() && v.last.Stamp == stamp && v.last.Shape == v.shape
}

// put emits the record in r, unless the last run left it as it is.
func (v *inventory) put(k key, r row) error {
	changed, err := v.changed(k, r, nil)
	if err != nil || !changed {
		return err
	}
	return r.record.Emit(k.String())
}

// changed notes the record in r, and more that belongs to it, and reports whether the last
// run left something else.
func (v *inventory) changed(k key, r row, more []byte) (bool, error) {
	b, err := r.record.MarshalJSON()
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(append(b, more...))
	d := digest(sum[:])
	v.now[k] = d
	last, ok := v.known[k]
	return !ok || last != d || !v.run.Incremental(), nil
}

// pass notes a record that exists and is not emitted, because the scope leaves
// it out or because it cannot be read. It is not gone.
func (v *inventory) pass(k key) {
	if d, ok := v.known[k]; ok {
		v.now[k] = d
	}
}

// finish deletes what is gone and stages the cursor. With keepAll nothing is:
// some file cannot be read.
func (v *inventory) finish(stamp string, keepAll bool) error {
	var gone []key
	for k := range v.known {
		if _, there := v.now[k]; there {
			continue
		}
		if keepAll || !v.Admits(k.String()) {
			v.pass(k)
			continue
		}
		gone = append(gone, k)
	}
	slices.SortFunc(gone, func(a, b key) int { return bytes.Compare(a[:], b[:]) })
	for _, k := range gone {
		if err := v.run.Delete(v.name, k.String()); err != nil {
			return err
		}
	}
	packed, whole := pack(v.now)
	if !whole {
		err := v.run.Skip(guest.Skip{Stream: v.name, Reason: "too_many_records",
			Message: "There are too many records for one cursor; deletions of some will not be noticed."})
		if err != nil {
			return err
		}
	}
	return v.run.Checkpoint(v.name, cursor{Shape: v.shape, Stamp: stamp, Known: packed})
}
