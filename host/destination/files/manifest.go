package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// A manifest describes the content of a directory. Its file is replaced, never modified.
type manifest struct {
	Sluice      int     `json:"sluice"` // manifestVersion
	Format      string  `json:"format"`
	Host        string  `json:"host"`
	Destination string  `json:"destination"`
	Epoch       int64   `json:"epoch"` // of the last claim
	Next        uint64  `json:"next"`  // number of the next part
	Tables      []table `json:"tables"`
	Streams     []part  `json:"streams,omitempty"` // the table of streams
	// Removed lists folders of removed tables, which may still exist.
	Removed []string `json:"removed,omitempty"`
}

const manifestVersion = 1

// A table is the table of one stream, in a folder of its name.
type table struct {
	destination.StreamID
	Holding destination.Holding `json:"holding"`
	Parts   []part              `json:"parts"` // sorted by name
}

// A part is one file of a table.
type part struct {
	Name   string `json:"name"`
	Number uint64 `json:"number"` // unique in the directory
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	From   uint64 `json:"from"` // the lowest and the highest version in it
	To     uint64 `json:"to"`
}

func (m *manifest) clone() *manifest {
	c := *m
	c.Tables, c.Removed = slices.Clone(m.Tables), slices.Clone(m.Removed)
	return &c
}

// table returns the index of a stream's table, or -1.
func (m *manifest) table(id destination.StreamID) int {
	return slices.IndexFunc(m.Tables, func(t table) bool { return t.StreamID == id })
}

// folders returns the parts by folder.
func (m *manifest) folders() map[string][]part {
	out := map[string][]part{}
	for _, t := range m.Tables {
		out[t.Holding.Table] = t.Parts
	}
	if len(m.Streams) > 0 {
		out[destination.StreamsTable] = m.Streams
	}
	return out
}

// check refuses names that Sluice never writes, because files by these names are removed and renamed.
func (m *manifest) check() error {
	for folder, parts := range m.folders() {
		if folder != safe(folder) {
			return errDamaged
		}
		for _, p := range parts {
			if !partPattern().MatchString(p.Name) {
				return errDamaged
			}
		}
	}
	for _, folder := range m.Removed {
		if folder != safe(folder) {
			return errDamaged
		}
	}
	return nil
}

var errDamaged = errors.New("the file " + manifestName + " is damaged; empty the directory, and it is filled anew")

// read reads the current manifest, nil if there is none.
func (s *Sink) read() (*manifest, []byte, error) {
	raw, err := s.root.ReadFile(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if s.m != nil && bytes.Equal(raw, s.raw) {
		return s.m, raw, nil
	}
	m, err := parse(raw)
	return m, raw, err
}

func parse(raw []byte) (*manifest, error) {
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil || m.Sluice < 1 {
		return nil, errDamaged
	}
	if m.Sluice > manifestVersion {
		return nil, errors.New("a newer Sluice wrote this directory; update this one")
	}
	return &m, m.check()
}

// claimed reports whether a directory exists that the owner has claimed.
func claimed(path string, o destination.Owner, f Format) (bool, error) {
	raw, err := os.ReadFile(filepath.Join(path, manifestName)) // #nosec G304 -- the owner's own
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m, err := parse(raw)
	return err == nil && m.Format == f.Name() && m.Host == o.Host && m.Destination == o.Destination, err
}

// commit makes next the content of the directory, gives the files written by w their final names, and removes those not
// in next.
func (s *Sink) commit(ctx context.Context, next *manifest, w *rewriting) error {
	next.Removed = slices.DeleteFunc(next.Removed, func(folder string) bool {
		_, err := s.root.Lstat(folder)
		return errors.Is(err, fs.ErrNotExist)
	})
	raw, err := json.MarshalIndent(next, "", " ")
	if err != nil {
		return err
	}
	var x *swap
	if w != nil {
		folder := w.batch.To.Table
		live := next.folders()[folder]
		x = s.stage(folder, live, w.fresh, superseded(s.m, folder, live))
	}
	err = s.prepare(raw, w, x)
	if err == nil {
		err = s.fence(ctx)
	}
	if err == nil {
		err = hook("commit")
	}
	if err == nil {
		err = s.root.Rename(manifestTmp, manifestName)
	}
	if err != nil {
		if x != nil {
			_ = s.clearSwap()
		}
		return err
	}
	was := s.m
	s.m, s.raw = next, raw
	if err := errors.Join(hook("committed"), syncDir(s.root, ".")); err != nil {
		s.unsettled = true
		return err
	}
	s.unsettled = s.expose(was, w, x) != nil // the next step tries again
	return nil
}

// superseded returns the parts of a folder in a manifest, which may be nil, that are not live.
func superseded(m *manifest, folder string, live []part) (gone []part) {
	if m == nil {
		return nil
	}
	for _, p := range m.folders()[folder] {
		if !slices.ContainsFunc(live, func(l part) bool { return l.Number == p.Number }) {
			gone = append(gone, p)
		}
	}
	return gone
}

// prepare writes the manifest under its temporary name and makes everything that it names durable. The syncs run
// concurrently, because a file system can then combine them.
func (s *Sink) prepare(raw []byte, w *rewriting, x *swap) error {
	if w == nil {
		return s.writeManifest(raw)
	}
	folders := []string{w.batch.To.Table}
	if x != nil {
		folders = append(folders, swapName)
	}
	synced := make(chan error, len(folders))
	for _, folder := range folders {
		go func() { synced <- syncDir(s.root, folder) }()
	}
	err := s.writeManifest(raw)
	for range folders {
		err = errors.Join(err, <-synced)
	}
	return errors.Join(err, w.wait())
}

func (s *Sink) writeManifest(raw []byte) (err error) {
	f, err := s.root.OpenFile(manifestTmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := (disk{f}).Write(raw); err != nil {
		return err
	}
	return f.Sync()
}

// fence checks once more whether another process has claimed the directory, because locks have no effect on some file
// systems.
func (s *Sink) fence(ctx context.Context) error {
	if s.m == nil {
		return ctx.Err()
	}
	now, _, err := s.read()
	switch {
	case err != nil:
		return err
	case now == nil:
		return errGone
	case now != s.m:
		return destination.ErrFenced
	}
	return ctx.Err()
}

// expose gives the files of a commit their final names and removes what they supersede: in one step by a swap, else
// file by file. What is superseded is then removed first, so that no row is ever seen twice.
func (s *Sink) expose(was *manifest, w *rewriting, x *swap) error {
	if x != nil && s.exchange(x) == nil {
		return s.clearSwap(x.gone...)
	}
	live := s.m.folders()
	if was != nil {
		for folder := range was.folders() {
			for _, p := range superseded(was, folder, live[folder]) {
				if err := s.root.Remove(path.Join(folder, p.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				if err := hook("removed"); err != nil {
					return err
				}
			}
			if live[folder] == nil {
				_ = s.root.Remove(folder) // fails if there is something else in it
			}
		}
	}
	if w != nil {
		folder := w.batch.To.Table
		for _, p := range w.fresh {
			if err := s.root.Rename(path.Join(folder, tmpName(p.Number)), path.Join(folder, p.Name)); err != nil {
				return err
			}
			if err := hook("renamed"); err != nil {
				return err
			}
		}
	}
	if x != nil {
		return s.clearSwap()
	}
	return nil
}

// settle completes what a crash interrupted: it gives files in the manifest their final names and removes Sluice's
// other files. It leaves files of others alone.
func (s *Sink) settle(m *manifest) error {
	_ = s.clearSwap() // fails if there is something else in it
	live := m.folders()
	for folder, parts := range live {
		if err := s.settleFolder(folder, parts); err != nil {
			return err
		}
	}
	for _, folder := range m.Removed {
		if live[folder] == nil {
			if err := s.settleFolder(folder, nil); err != nil {
				return err
			}
			_ = s.root.Remove(folder) // fails if there is something else in it
		}
	}
	return s.settleUnnamed(m)
}

func (s *Sink) settleFolder(folder string, parts []part) error {
	entries, err := s.list(folder)
	if err != nil {
		return err
	}
	var hidden []part
	keep := map[string]bool{}
	for _, p := range parts {
		keep[p.Name] = true
		if tmp := tmpName(p.Number); slices.Contains(entries, tmp) && !slices.Contains(entries, p.Name) {
			keep[tmp] = true
			hidden = append(hidden, p)
		}
	}
	for _, name := range entries {
		if keep[name] || !partPattern().MatchString(name) && !tmpPattern().MatchString(name) {
			continue
		}
		if err := s.root.Remove(path.Join(folder, name)); err != nil {
			return err
		}
	}
	for _, p := range hidden {
		if err := s.root.Rename(path.Join(folder, tmpName(p.Number)), path.Join(folder, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// settleUnnamed removes folders of tables that were never committed, which contain only Sluice's hidden files.
func (s *Sink) settleUnnamed(m *manifest) error {
	folders, err := s.list(".")
	if err != nil {
		return err
	}
	live := m.folders()
	for _, folder := range folders {
		if fi, err := s.root.Lstat(folder); err != nil || !fi.IsDir() || live[folder] != nil {
			continue
		}
		entries, err := s.list(folder)
		if err != nil || len(entries) == 0 ||
			slices.ContainsFunc(entries, func(n string) bool { return !tmpPattern().MatchString(n) }) {
			continue
		}
		for _, name := range entries {
			if err := s.root.Remove(path.Join(folder, name)); err != nil {
				return err
			}
		}
		if err := s.root.Remove(folder); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a folder, none if it does not exist.
func (s *Sink) list(folder string) ([]string, error) {
	f, err := s.root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// strangers returns an error if a folder contains names other than ours, Sluice's hidden files, and those that
// operating systems create anywhere.
func (s *Sink) strangers(folder string, ours ...string) error {
	names, err := s.list(folder)
	if err != nil {
		return err
	}
	ours = append(ours, "lost+found", ".DS_Store", "Thumbs.db", "desktop.ini")
	for _, name := range names {
		if !slices.Contains(ours, name) && !tmpPattern().MatchString(name) {
			return fmt.Errorf("%w: %s", destination.ErrForeign, abi.Clean(path.Join(folder, name)))
		}
	}
	return nil
}
