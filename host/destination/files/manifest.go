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

// A manifest is all that a directory holds. Its file is never changed, only replaced.
type manifest struct {
	Sluice      int     `json:"sluice"` // manifestVersion
	Format      string  `json:"format"`
	Host        string  `json:"host"`
	Destination string  `json:"destination"`
	Epoch       int64   `json:"epoch"` // of the last claim
	Next        uint64  `json:"next"`  // number of the next part
	Tables      []table `json:"tables"`
	Streams     []part  `json:"streams,omitempty"` // of the table of streams
	// Removed are folders of tables that are no more, and may be there yet.
	Removed []string `json:"removed,omitempty"`
}

const manifestVersion = 1

// A table is that of one stream, in a folder of its name.
type table struct {
	destination.StreamID
	Holding destination.Holding `json:"holding"`
	Parts   []part              `json:"parts"` // in the order of their names
}

// A part is one file of a table.
type part struct {
	Name   string `json:"name"`
	Number uint64 `json:"number"` // no two of a directory have the same
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	From   uint64 `json:"from"` // the least and the greatest version in it
	To     uint64 `json:"to"`
}

func (m *manifest) clone() *manifest {
	c := *m
	c.Tables, c.Removed = slices.Clone(m.Tables), slices.Clone(m.Removed)
	return &c
}

// table finds that of a stream, or is -1.
func (m *manifest) table(id destination.StreamID) int {
	return slices.IndexFunc(m.Tables, func(t table) bool { return t.StreamID == id })
}

// folders are the parts by the folders in which they are.
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

// check refuses what no Sluice has written: names in it are removed and renamed.
func (m *manifest) check() error {
	for folder, parts := range m.folders() {
		if folder != safe(folder) {
			return errDamaged
		}
		for _, p := range parts {
			if !partPattern.MatchString(p.Name) {
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

// read reads the manifest as it is now; nil where there is none.
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

// claimed reports whether a directory is there that the owner claimed.
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

// commit makes next what the directory holds. The files that w wrote get their names, and those that next has no more go.
func (s *Sink) commit(ctx context.Context, next *manifest, w *rewriting) error {
	next.Removed = slices.DeleteFunc(next.Removed, func(folder string) bool {
		_, err := s.root.Lstat(folder)
		return errors.Is(err, fs.ErrNotExist)
	})
	raw, err := json.MarshalIndent(next, "", " ")
	if err != nil {
		return err
	}
	if err := s.prepare(raw, w); err != nil {
		return err
	}
	if err := s.fence(ctx); err != nil {
		return err
	}
	if err := hook("commit"); err != nil {
		return err
	}
	if err := s.root.Rename(manifestTmp, manifestName); err != nil {
		return err
	}
	was := s.m
	s.m, s.raw = next, raw
	if err := errors.Join(hook("committed"), syncDir(s.root, ".")); err != nil {
		s.unsettled = true
		return err
	}
	s.unsettled = s.expose(was, w) != nil // the next step tries again
	return nil
}

// prepare makes everything last that the manifest will name, and the manifest under its
// other name. It is done at once, for a file system does it in one go then.
func (s *Sink) prepare(raw []byte, w *rewriting) error {
	if w == nil {
		return s.writeManifest(raw)
	}
	folder := make(chan error, 1)
	go func() { folder <- syncDir(s.root, w.batch.To.Table) }()
	return errors.Join(s.writeManifest(raw), <-folder, w.wait())
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

// fence looks once more whether another has claimed the directory: the lock keeps nobody
// out on file systems that have none.
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

// expose gives the files of a commit their names, and removes what it superseded.
func (s *Sink) expose(was *manifest, w *rewriting) error {
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
	if was == nil {
		return nil
	}
	live := s.m.folders()
	for folder, parts := range was.folders() {
		for _, p := range parts {
			if slices.ContainsFunc(live[folder], func(l part) bool { return l.Number == p.Number }) {
				continue
			}
			if err := s.root.Remove(path.Join(folder, p.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := hook("removed"); err != nil {
				return err
			}
		}
		if live[folder] == nil {
			_ = s.root.Remove(folder) // stays if there is something else in it
		}
	}
	return nil
}

// settle finishes what a crash left half done: files of the manifest get their names, and
// files of ours that it does not name go. What others put into the directory stays.
func (s *Sink) settle(m *manifest) error {
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
			_ = s.root.Remove(folder) // stays if there is something else in it
		}
	}
	return s.settleUnnamed(m)
}

func (s *Sink) settleFolder(folder string, parts []part) error {
	entries, err := s.list(folder)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, p := range parts {
		keep[p.Name] = true
		if tmp := tmpName(p.Number); slices.Contains(entries, tmp) && !slices.Contains(entries, p.Name) {
			keep[tmp] = true
			if err := s.root.Rename(path.Join(folder, tmp), path.Join(folder, p.Name)); err != nil {
				return err
			}
		}
	}
	for _, name := range entries {
		if keep[name] || !partPattern.MatchString(name) && !tmpPattern.MatchString(name) {
			continue
		}
		if err := s.root.Remove(path.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// settleUnnamed removes the folder of a table that was never committed: all that is in it
// are hidden files of ours.
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
		if err != nil || len(entries) == 0 || slices.ContainsFunc(entries, func(n string) bool { return !tmpPattern.MatchString(n) }) {
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

// list are the names in a folder; none where there is no folder.
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

// strangers are names in a directory that no Sluice has made, and what systems put
// anywhere is not meant.
func (s *Sink) strangers(folder string, ours ...string) error {
	names, err := s.list(folder)
	if err != nil {
		return err
	}
	ours = append(ours, "lost+found", ".DS_Store", "Thumbs.db", "desktop.ini")
	for _, name := range names {
		if !slices.Contains(ours, name) && !tmpPattern.MatchString(name) {
			return fmt.Errorf("%w: %s", destination.ErrForeign, abi.Clean(path.Join(folder, name)))
		}
	}
	return nil
}
