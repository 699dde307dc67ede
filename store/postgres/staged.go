package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"hash/crc32"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// smallFile is the size up to which a content is part of the commit that names it. A longer one is split into pieces of
// pieceBytes, each written in a transaction of its own beforehand.
const (
	smallFile  = 64 << 10
	pieceBytes = store.PieceBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A staged is a file that no record refers to yet. It is in memory while short, then in pieces.
type staged struct {
	s         *files
	ctx       context.Context
	hash      hash.Hash
	buf       []byte // what is in no piece yet
	content   int64  // number of a long content; 0 for none
	pieces    int32
	digest    store.Digest
	size      int64
	finished  bool
	submitted bool
	failed    error
}

// StageFile implements store.Files.
func (s *files) StageFile(ctx context.Context, _ store.ConnectionID) (store.StagedFile, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := s.Stalled(); err != nil {
		return nil, err
	}
	return &staged{s: s, ctx: ctx, hash: sha256.New()}, nil
}

// Write implements store.StagedFile.
func (f *staged) Write(b []byte) (int, error) {
	if f.failed == nil && f.finished {
		f.failed = errors.New("the file is finished")
	}
	for rest := b; f.failed == nil && len(rest) > 0; {
		n := min(len(rest), pieceBytes-len(f.buf))
		f.buf, rest = append(f.buf, rest[:n]...), rest[n:]
		if len(f.buf) == pieceBytes {
			f.failed = f.flush()
		}
	}
	if f.failed != nil {
		return 0, f.failed
	}
	f.hash.Write(b)
	f.size += int64(len(b))
	return len(b), nil
}

// flush writes the buffer as a piece. It does not wait for the server's disk, because the commit that takes the content
// comes later in the log.
func (f *staged) flush() error {
	s := f.s
	if f.content == 0 {
		err := s.lay(f.ctx, func(b *pgx.Batch) {
			b.Queue("insert into content (epoch) values ($1) returning number",
				s.opts.Self.Epoch).QueryRow(func(r pgx.Row) error { return r.Scan(&f.content) })
		})
		if err != nil {
			return err
		}
	}
	err := s.lay(f.ctx, func(b *pgx.Batch) {
		b.Queue("insert into piece (content, n, sum, data) values ($1, $2, $3, $4)", f.content, f.pieces,
			int64(crc32.Checksum(f.buf, castagnoli)), f.buf)
	})
	f.pieces, f.buf = f.pieces+1, f.buf[:0]
	return err
}

// lay writes data that is part of no commit yet. It does not wait for space but returns store.ErrNoSpace.
func (s *files) lay(ctx context.Context, queue func(*pgx.Batch)) error {
	var full error
	err := s.persist(ctx, func(ctx context.Context) error {
		err := s.told(ctx, s.once(ctx, func(b *pgx.Batch) {
			b.Queue("set local synchronous_commit = off")
			queue(b)
		}, func(context.Context, *tx) error { return nil }))
		if errors.Is(err, store.ErrNoSpace) {
			full, err = err, nil
		}
		return err
	})
	return cmp.Or(err, full)
}

// Finish implements store.StagedFile.
func (f *staged) Finish() (store.Digest, int64, error) {
	if f.finished || f.failed != nil {
		return f.digest, f.size, f.failed
	}
	f.finished = true
	f.digest = store.DigestOf(f.hash.Sum(nil))
	if f.content != 0 || len(f.buf) > smallFile {
		if len(f.buf) > 0 {
			f.failed = f.flush()
		}
		f.buf = nil
	}
	return f.digest, f.size, f.failed
}

// Memory implements store.StagedFile.
func (f *staged) Memory() int { return cap(f.buf) }

// Discard implements store.StagedFile.
func (f *staged) Discard() {
	if f.submitted {
		return
	}
	f.finished, f.buf = true, nil
	if f.content != 0 {
		f.s.contents.discard(f.content)
		f.content = 0
	}
}

// stageable hands the files of a commit over to the store. The settle function that it returns also discards the files
// of a commit that failed.
func (s *files) stageable(c *store.Commit, settle func(store.Ack, error)) (func(store.Ack, error), error) {
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
		if err != nil {
			for _, f := range c.Files {
				x := f.(*staged)
				x.submitted = false
				x.Discard()
			}
		}
		settle(a, err)
	}, nil
}
