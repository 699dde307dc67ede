package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/store"
)

// exportedFiles are the contents that go beside exported records. nil is none.
type exportedFiles struct {
	src  *client.Client
	root *os.Root
	kept int
	gone atomic.Int64
}

// besides opens the directory in which a file of records is.
func besides(src *client.Client, path string) (*exportedFiles, error) {
	root, err := os.OpenRoot(filepath.Dir(app.Home(path)))
	if err != nil {
		return nil, usagef("--to %s: %w", path, err)
	}
	return &exportedFiles{src: src, root: root}, nil
}

func (x *exportedFiles) close() error {
	if x == nil {
		return nil
	}
	return x.root.Close()
}

// said says what came of it.
func (x *exportedFiles) said(c *command) {
	if x == nil {
		return
	}
	if n := x.gone.Load(); n > 0 {
		c.warnf("%d files went while their records were read; the next export has what took their place.", n)
	}
	if x.kept > 0 {
		c.warnf("%s: %d new files", filepath.Join(abi.Clean(x.root.Name()), destination.FilesTable), x.kept)
	}
}

// opener opens contents of a connection.
func (x *exportedFiles) opener(id store.ConnectionID) func(context.Context, store.Digest) (destination.Content, error) {
	return func(ctx context.Context, d store.Digest) (destination.Content, error) {
		to := &spool{}
		err := x.src.File(ctx, id, d, to)
		if errors.Is(err, store.ErrNotFound) {
			x.gone.Add(1)
		}
		if err != nil {
			_ = to.Close()
			return nil, err
		}
		return to, to.rewind()
	}
}

// from is a source whose records name the paths of their files, which are there before them.
func (x *exportedFiles) from(src export.Source, s export.Selection) export.Source {
	if x == nil || s.Manifest == nil {
		return src
	}
	out := &filedSource{Source: src, x: x, filers: map[store.Stream]*destination.Filer{}}
	for _, st := range s.Streams {
		if fields := s.Manifest.Stream(string(st.Stream)).FileFields(); len(fields) > 0 {
			out.filers[st.Stream] = &destination.Filer{Fields: fields, Open: x.opener(s.Connection), Path: destination.FilePath}
		}
	}
	return out
}

// A filedSource keeps the files of what it reads.
type filedSource struct {
	export.Source
	x      *exportedFiles
	filers map[store.Stream]*destination.Filer
}

// Records implements export.Source.
func (f *filedSource) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	page, err := f.Source.Records(ctx, q)
	filer := f.filers[q.Stream]
	if err != nil || filer == nil {
		return page, err
	}
	var all []destination.File
	for i := range page.Records {
		if r := &page.Records[i]; !r.Deleted {
			var fresh []destination.File
			r.Data, fresh = filer.Of(r.Data)
			all = append(all, fresh...)
		}
	}
	for some := range slices.Chunk(all, destination.FilesAtOnce) {
		n, err := files.Keep(ctx, f.x.root, some)
		if f.x.kept += n; err != nil {
			return page, fmt.Errorf("keep the files of %s: %w", q.Stream, err)
		}
	}
	return page, nil
}

// A spool is a content on its way, in memory while it is short.
type spool struct {
	short bytes.Buffer
	file  *os.File
	size  int64
	from  io.Reader
}

const maxShort = 1 << 20

// Write implements io.Writer.
func (s *spool) Write(b []byte) (int, error) {
	s.size += int64(len(b))
	if s.file == nil && s.short.Len()+len(b) <= maxShort {
		return s.short.Write(b)
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "sluice-file-")
		if err != nil {
			return 0, err
		}
		s.file = f
		if _, err := f.Write(s.short.Bytes()); err != nil {
			return 0, err
		}
	}
	return s.file.Write(b)
}

func (s *spool) rewind() (err error) {
	if s.from = &s.short; s.file != nil {
		s.from = s.file
		_, err = s.file.Seek(0, io.SeekStart)
	}
	return err
}

// Read implements destination.Content.
func (s *spool) Read(b []byte) (int, error) { return s.from.Read(b) }

// Size implements destination.Content.
func (s *spool) Size() int64 { return s.size }

// Close implements destination.Content.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	_ = s.file.Close() // of no use any more
	return os.Remove(s.file.Name())
}
