package badger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// A fileRefs counts the references of one commit to contents. Contents without a reference at its end are removed, at
// the latest with the end of the run.
type fileRefs struct {
	c            *committer
	g            *group
	connection   store.ConnectionID
	ends         bool // the commit ends the run
	files        []store.StagedFile
	staged       map[store.Digest]*staged
	stored       map[*staged]bool
	unreferenced map[store.Digest]bool // no record held it at some point of the commit
	usage        store.FileUsage
	counted      bool // usage has been read
}

func (c *committer) newFileRefs(g *group, cm *store.Commit) *fileRefs {
	h := &fileRefs{c: c, g: g, connection: cm.Lease.ConnectionID, ends: cm.End, files: cm.Files,
		unreferenced: map[store.Digest]bool{}, stored: map[*staged]bool{}}
	if len(cm.Files) > 0 {
		h.staged = make(map[store.Digest]*staged, len(cm.Files))
		for _, f := range cm.Files {
			x := f.(*staged)
			if h.staged[x.digest] == nil {
				h.staged[x.digest] = x
			}
		}
	}
	return h
}

// batch adds the references of those changes of a batch that are kept, and drops the references of the versions that
// they replace.
func (h *fileRefs) batch(st *stream, b *store.Batch, kept []int) error {
	if _, holds := b.Holds(); !holds && !st.holds {
		return nil
	}
	st.holds = true
	next := 0
	n := -1
	for _, change := range b.Changes() {
		n++
		if next == len(kept) || kept[next] != n {
			continue
		}
		next++
		if err := h.change(st.name, string(change.Key), b.Held(n)); err != nil {
			return err
		}
	}
	return nil
}

func (h *fileRefs) change(s store.Stream, k string, files []store.Held) error {
	at := heldKey(h.connection, s, k)
	before, _, err := h.g.get(at)
	if err != nil {
		return err
	}
	var held []store.Held
	if len(before) > 0 {
		if held, err = decodeHeld(at, before); err != nil {
			return err
		}
	}
	was, is := digests(held), digests(files)
	for _, f := range is {
		if !slices.ContainsFunc(was, func(o store.Held) bool { return o.Digest == f.Digest }) {
			if err := h.add(f.File); err != nil {
				return err
			}
		}
	}
	for _, f := range was {
		if !slices.ContainsFunc(is, func(o store.Held) bool { return o.Digest == f.Digest }) {
			if err := h.drop(f.Digest); err != nil {
				return err
			}
		}
	}
	switch {
	case len(files) > 0:
		text, err := json.Marshal(files)
		if err != nil {
			return err
		}
		return h.g.replace(at, text)
	case len(held) > 0:
		return h.g.remove(at)
	}
	return nil
}

// digests returns files without repeated digests.
func digests(files []store.Held) []store.Held {
	var out []store.Held
	for _, f := range files {
		if !slices.ContainsFunc(out, func(o store.Held) bool { return o.Digest == f.Digest }) {
			out = append(out, f)
		}
	}
	return out
}

func (h *fileRefs) count(files, bytes int64) error {
	k := key(kindUsage, string(h.connection))
	if !h.counted {
		b, ok, err := h.g.get(k)
		if err == nil && ok {
			h.usage, err = fileUsage(b)
		}
		if err != nil {
			return err
		}
		h.counted = true
	}
	h.usage.Files += uint64(files)
	h.usage.Bytes += uint64(bytes)
	h.g.put(k, usageValue(h.usage))
	return nil
}

func (h *fileRefs) add(f store.File) error {
	k := fileKey(kindFileOf, h.connection, f.Digest)
	var kept fileOf
	known, err := h.g.getJSON(k, &kept)
	if err != nil {
		return err
	}
	if !known {
		x := h.staged[f.Digest]
		if x == nil || x.size != f.Size {
			return &store.SinkError{Code: "unknown_file",
				Err: fmt.Errorf("file %s is neither kept nor part of the commit", f.Digest)}
		}
		if err := h.keep(x); err != nil {
			return err
		}
		if err := h.count(1, f.Size); err != nil {
			return err
		}
		kept = fileOf{File: f}
	}
	if kept.Refs == 0 && known && !h.unreferenced[f.Digest] {
		if err := h.g.remove(fileKey(kindUnreferenced, h.connection, f.Digest)); err != nil {
			return err
		}
	}
	delete(h.unreferenced, f.Digest)
	kept.Refs++
	return h.g.putJSON(k, kept)
}

// keep stores a staged content.
func (h *fileRefs) keep(x *staged) error {
	h.stored[x] = true
	if x.long == nil {
		h.g.store(fileKey(kindContent, h.connection, x.digest), x.short)
		return nil
	}
	return h.g.putJSON(fileKey(kindLocation, h.connection, x.digest), x.at)
}

func (h *fileRefs) drop(d store.Digest) error {
	k := fileKey(kindFileOf, h.connection, d)
	var kept fileOf
	if known, err := h.g.getJSON(k, &kept); err != nil || !known {
		return err
	}
	if kept.Refs--; kept.Refs == 0 {
		h.unreferenced[d] = true
	}
	return h.g.putJSON(k, kept)
}

// maxLoose bounds the contents that the last commit of a run must erase. What a run drops beyond that is erased at
// once.
const maxLoose = 1000

// end keeps contents that are no longer held until the run ends, because a later record of the run may name them again.
// The run's last commit erases them. Staged files that were not needed are removed.
func (h *fileRefs) end() error {
	var doomed []string
	for d := range h.unreferenced {
		if !h.ends && h.c.unreferenced[h.connection] < maxLoose {
			h.c.unreferenced[h.connection]++
			h.g.put(fileKey(kindUnreferenced, h.connection, d), newValue(0))
			continue
		}
		if err := h.erase(d, &doomed); err != nil {
			return err
		}
	}
	if h.ends {
		delete(h.c.unreferenced, h.connection)
		if err := h.eraseUnreferenced(&doomed); err != nil {
			return err
		}
	}
	for _, f := range h.files {
		if x := f.(*staged); !h.stored[x] && x.long != nil {
			doomed = append(doomed, x.at.Name)
		}
	}
	h.g.removeLater(doomed...)
	return nil
}

// eraseUnreferenced erases what earlier commits of this run, or of a run that was killed, dropped.
func (h *fileRefs) eraseUnreferenced(doomed *[]string) error {
	prefix := key(kindUnreferenced, string(h.connection), "")
	keys := slices.Collect(h.c.base.keys(prefix, nil, false))
	for _, w := range h.g.writes {
		if bytes.HasPrefix(w.key, prefix) {
			keys = append(keys, w.key)
		}
	}
	for _, k := range keys {
		switch _, ok, err := h.g.get(k); {
		case err != nil:
			return err
		case !ok: // held again
			continue
		}
		if err := h.g.remove(k); err != nil {
			return err
		}
		if err := h.erase(store.Digest(lastPart(k)), doomed); err != nil {
			return err
		}
	}
	return nil
}

// erase deletes a content if no record holds it.
func (h *fileRefs) erase(d store.Digest, doomed *[]string) error {
	k := fileKey(kindFileOf, h.connection, d)
	var kept fileOf
	if known, err := h.g.getJSON(k, &kept); err != nil || !known || kept.Refs != 0 {
		return err
	}
	name, err := h.g.removeFile(h.connection, d)
	if err != nil {
		return err
	}
	if name != "" {
		*doomed = append(*doomed, name)
	}
	if err := h.g.remove(k); err != nil {
		return err
	}
	return h.count(-1, -kept.Size)
}

// removeFile deletes a content. If it is in a file of its own, it returns the name, which the caller
// passes to removeLater.
func (g *group) removeFile(c store.ConnectionID, d store.Digest) (name string, err error) {
	k := fileKey(kindLocation, c, d)
	b, ok, err := g.get(k)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", g.remove(fileKey(kindContent, c, d))
	}
	p, err := decodeLocation(b)
	if err != nil {
		return "", err
	}
	return p.Name, g.remove(k)
}

// removeLater schedules the removal of files for when the group is durable and no reader sees an older one.
func (g *group) removeLater(names ...string) {
	if len(names) > 0 {
		g.publish = append(g.publish, func() { g.c.s.contentFiles.removeLater(g.seq, names...) })
	}
}
