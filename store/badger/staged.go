package badger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/sluicehost/sluice/store"
)

// A staged is a file that no record refers to yet. It is in memory while short, then on disk.
type staged struct {
	s         *disk
	hash      hash.Hash
	short     []byte
	long      *contentWriter
	at        contentLocation // of long, once it is finished
	digest    store.Digest
	size      int64
	measured  int64 // size at the last check of free space
	finished  bool
	submitted bool
	failed    error
}

// spaceLooks is how many bytes of a file are written between two checks of free space.
const spaceLooks = 8 << 20

// StageFile implements store.Files.
func (s *files) StageFile(_ context.Context, _ store.ConnectionID) (store.StagedFile, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	if err := s.Stalled(); err != nil {
		return nil, err
	}
	return &staged{s: s.disk, hash: sha256.New()}, nil
}

// Write implements store.StagedFile.
func (f *staged) Write(b []byte) (int, error) {
	if f.failed == nil {
		f.failed = f.write(b)
	}
	if f.failed != nil {
		return 0, f.failed
	}
	f.hash.Write(b)
	f.size += int64(len(b))
	return len(b), nil
}

func (f *staged) write(b []byte) (err error) {
	if f.finished {
		return errors.New("the file is finished")
	}
	if f.long == nil && len(f.short)+len(b) <= smallFile {
		f.short = append(f.short, b...)
		return nil
	}
	if f.size-f.measured >= spaceLooks || f.long == nil {
		f.measured = f.size
		f.s.space.measure()
		if err := f.s.Stalled(); err != nil {
			return err
		}
	}
	if f.long == nil {
		if f.long, err = f.s.contentFiles.create(); err != nil {
			return fmt.Errorf("create file: %w", err)
		}
		if _, err := f.long.Write(f.short); err != nil {
			return err
		}
		f.short = nil
	}
	_, err = f.long.Write(b)
	return err
}

// Finish implements store.StagedFile.
func (f *staged) Finish() (store.Digest, int64, error) {
	if f.finished || f.failed != nil {
		return f.digest, f.size, f.failed
	}
	f.finished = true
	f.digest = store.DigestOf(f.hash.Sum(nil))
	if f.long != nil {
		f.at, f.failed = f.long.finish()
	}
	return f.digest, f.size, f.failed
}

// Memory implements store.StagedFile.
func (f *staged) Memory() int { return cap(f.short) }

// Discard implements store.StagedFile.
func (f *staged) Discard() {
	if f.submitted {
		return
	}
	f.finished, f.short = true, nil
	if f.long != nil {
		f.long.abandon()
		f.long = nil
	}
}

// submit hands the files of a commit over to the store. The settle function that it returns also discards the files of
// a commit that failed.
func (s *disk) submit(c *store.Commit, settle func(store.Ack, error)) (func(store.Ack, error), error) {
	if len(c.Files) == 0 {
		return settle, nil
	}
	for _, f := range c.Files {
		if x, ok := f.(*staged); !ok || !x.finished || x.failed != nil || x.s != s {
			return nil, errors.New("a file of the commit is not finished")
		}
	}
	for _, f := range c.Files {
		f.(*staged).submitted = true
	}
	return func(a store.Ack, err error) {
		if err != nil && s.stopped() == nil {
			for _, f := range c.Files {
				x := f.(*staged)
				x.submitted = false
				x.Discard()
			}
		}
		settle(a, err)
	}, nil
}
