package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/private"
)

// A Sink is an open directory.
type Sink struct {
	root      *os.Root
	format    Format
	m         *manifest // as last read or written
	raw       []byte    // its bytes
	unsettled bool      // a step left files that settle must handle
	index     *index
}

var errGone = errors.New("the file " + manifestName + " is gone; what the directory holds is not known without it")

// hook is called between operations on the disk. Tests replace it.
var hook = func(string) error { return nil }

// A disk is a file for which tests can make writes fail.
type disk struct{ io.Writer }

func (d disk) Write(b []byte) (int, error) {
	if err := hook("write"); err != nil {
		return 0, err
	}
	return d.Writer.Write(b)
}

// open opens and claims a directory, which it creates if necessary. It may return destination.ErrClaimed or
// destination.ErrForeign.
func open(ctx context.Context, path string, o destination.Owner, f Format) (*Sink, error) {
	if fi, err := os.Stat(path); err == nil && !fi.IsDir() {
		return nil, fmt.Errorf("%w: %s is a file, want a directory", destination.ErrForeign, path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, told(err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, told(err)
	}
	s := &Sink{root: root, format: f, index: newIndex(root)}
	if _, err := root.Lstat(manifestName); errors.Is(err, fs.ErrNotExist) {
		err = s.strangers(".", lockName, manifestTmp, keysTmp) // before a lock file is created next to them
		if err != nil {
			return nil, errors.Join(told(err), root.Close())
		}
	}
	if err := s.locked(ctx, func() error { return s.claim(ctx, o) }); err != nil {
		return nil, errors.Join(told(err), root.Close())
	}
	return s, nil
}

func (s *Sink) claim(ctx context.Context, o destination.Owner) error {
	m, raw, err := s.read()
	if err != nil {
		return err
	}
	switch {
	case m == nil:
		if err := s.strangers(".", lockName, manifestTmp, keysTmp); err != nil {
			return err
		}
		m = &manifest{Sluice: manifestVersion, Format: s.format.Name(), Tables: []table{}}
	case m.Format != s.format.Name():
		return fmt.Errorf("%w: the directory has files of the kind %s", destination.ErrForeign, m.Format)
	case (m.Host != o.Host || m.Destination != o.Destination) && !o.TakeOver:
		return destination.ErrClaimed
	default:
		s.m, s.raw = m, raw
	}
	if err := s.settle(m); err != nil {
		return err
	}
	next := m.clone()
	next.Host, next.Destination, next.Epoch = o.Host, o.Destination, m.Epoch+1
	return s.commit(ctx, next, nil)
}

// busy is how long a step waits for the lock of the directory. Tests shorten it.
var busy = 30 * time.Second

var errBusy = errors.New(
	"another process has locked the directory, and holds it; if that is a host which was stopped, end it")

// locked runs do while holding the lock of the directory.
func (s *Sink) locked(ctx context.Context, do func() error) (err error) {
	f, err := s.root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	limited, cancel := context.WithTimeout(ctx, busy)
	defer cancel()
	err = private.LockFile(limited, f) // on systems without, the owner in the manifest keeps processes apart
	switch {
	case ctx.Err() == nil && limited.Err() != nil && err != nil:
		return errBusy
	case err != nil:
		return err
	}
	return do()
}

// step runs do with the lock held, unless another process has claimed the directory.
func (s *Sink) step(ctx context.Context, do func() error) error {
	return told(s.locked(ctx, func() error {
		if err := s.refresh(); err != nil {
			return err
		}
		if s.unsettled {
			if err := s.settle(s.m); err != nil {
				return err
			}
			s.unsettled = false
		}
		return do()
	}))
}

// refresh compares the state in memory with the manifest. They differ if the last sync of a step failed, so that its
// outcome was unknown.
func (s *Sink) refresh() error {
	m, raw, err := s.read()
	switch {
	case err != nil:
		return err
	case m == nil:
		return errGone
	case m == s.m:
		return nil
	case m.Epoch != s.m.Epoch || m.Host != s.m.Host || m.Destination != s.m.Destination:
		return destination.ErrFenced
	}
	s.m, s.raw, s.unsettled = m, raw, true
	s.index.forget()
	return nil
}

// told adds an explanation for the owner to an error of the file system.
func told(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is full: %w", err)
	case errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk quota is used up: %w", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the file system can only be read: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the host may not write there: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf(
			"something of the directory was removed; if the next try does not mend that, rebuild the destination: %w", err)
	}
	return err
}

// Holdings implements destination.Sink.
func (s *Sink) Holdings(context.Context) (map[destination.StreamID]destination.Holding, error) {
	out := map[destination.StreamID]destination.Holding{}
	for _, t := range s.m.Tables {
		h := t.Holding
		h.Shape = h.Shape.Clone()
		out[t.StreamID] = h
	}
	return out, nil
}

// Apply implements destination.Sink.
func (s *Sink) Apply(ctx context.Context, b *destination.Batch) error {
	return s.step(ctx, func() error {
		next := s.m.clone()
		i, err := s.tableOf(next, b)
		if err != nil {
			return err
		}
		t := &next.Tables[i]
		w := &rewriting{Sink: s, batch: b, was: *t, number: next.Next}
		if err := w.run(ctx); err != nil {
			w.discard()
			return err
		}
		t.Holding, t.Parts, next.Next = b.To, w.parts(), w.number
		if err := s.commit(ctx, next, w); err != nil {
			if s.m != next {
				w.discard()
			}
			return err
		}
		s.index.replace(b.ID, t.Parts, w.sets)
		return nil
	})
}

// tableOf returns the index of a batch's table in a manifest, to which it adds a new one.
func (s *Sink) tableOf(m *manifest, b *destination.Batch) (int, error) {
	i := m.table(b.ID)
	if (i < 0) != (b.From == nil) || i >= 0 && m.Tables[i].Holding.Mark != b.From.Mark {
		return 0, errors.New("the directory changed since it was looked at")
	}
	if i >= 0 {
		b.To.Table = m.Tables[i].Holding.Table
		return i, nil
	}
	taken := map[string]bool{destination.StreamsTable: true, destination.FilesTable: true, lockName: true,
		manifestName: true, manifestTmp: true, keysTmp: true}
	for _, t := range m.Tables {
		taken[strings.ToLower(t.Holding.Table)] = true
	}
	b.To.Table = folderName(b.ID.Table(), taken)
	if err := s.folder(m, b.To.Table); err != nil {
		return 0, err
	}
	m.Tables = append(m.Tables, table{StreamID: b.ID, Holding: b.To})
	return len(m.Tables) - 1, nil
}

// folder creates a folder, or accepts an existing one with no foreign files.
func (s *Sink) folder(m *manifest, name string) error {
	if slices.Contains(m.Removed, name) {
		if err := s.settleFolder(name, nil); err != nil {
			return err
		}
	}
	if fi, err := s.root.Lstat(name); err == nil {
		if !fi.IsDir() {
			return fmt.Errorf("%w: %s", destination.ErrForeign, name)
		}
		return s.strangers(name)
	}
	if err := s.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	return errors.Join(hook("folder"), syncDir(s.root, "."))
}

// Clear implements destination.Sink.
func (s *Sink) Clear(ctx context.Context, id destination.StreamID) error {
	return s.step(ctx, func() error {
		i := s.m.table(id)
		if i < 0 {
			return nil
		}
		next := s.m.clone()
		next.Removed = append(next.Removed, next.Tables[i].Holding.Table)
		next.Tables = slices.Delete(next.Tables, i, i+1)
		if err := s.commit(ctx, next, nil); err != nil {
			return err
		}
		delete(s.index.places, id)
		return nil
	})
}

// Close implements destination.Sink.
func (s *Sink) Close() error { return errors.Join(s.index.close(), s.root.Close()) }
