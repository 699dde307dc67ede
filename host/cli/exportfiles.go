package cli

import (
	"context"
	"errors"
	"fmt"
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
	src     *client.Client
	root    *os.Root
	saved   int
	missing atomic.Int64
}

// openExportedFiles opens the directory of a file of records, to put files beside it.
func openExportedFiles(src *client.Client, path string) (*exportedFiles, error) {
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

// printCounts prints how many files were new, and how many went meanwhile.
func (x *exportedFiles) printCounts(c *command) {
	if x == nil {
		return
	}
	if n := x.missing.Load(); n > 0 {
		c.warnf("%d files went while their records were read; the next export has what took their place.", n)
	}
	if x.saved > 0 {
		c.warnf("%s: %d new files", filepath.Join(abi.Clean(x.root.Name()), destination.FilesTable), x.saved)
	}
}

// opener returns a function that opens file contents of a connection and counts those
// that are gone.
func (x *exportedFiles) opener(id store.ConnectionID) func(context.Context, store.Digest) (destination.Content, error) {
	return func(ctx context.Context, d store.Digest) (destination.Content, error) {
		content, _, err := x.src.OpenFile(ctx, id, d)
		if errors.Is(err, store.ErrNotFound) {
			x.missing.Add(1)
		}
		return content, err
	}
}

// wrap returns a source whose records name the paths of their files, which are there before them.
func (x *exportedFiles) wrap(src export.Source, s export.Selection) export.Source {
	if x == nil || s.Manifest == nil {
		return src
	}
	out := &fileSavingSource{Source: src, x: x, filers: map[store.Stream]*destination.Filer{}}
	for _, st := range s.Streams {
		if fields := s.Manifest.Stream(string(st.Stream)).FileFields(); len(fields) > 0 {
			out.filers[st.Stream] = &destination.Filer{Fields: fields, Open: x.opener(s.Connection), Path: destination.FilePath}
		}
	}
	return out
}

// A fileSavingSource saves the files of the records that it reads.
type fileSavingSource struct {
	export.Source
	x      *exportedFiles
	filers map[store.Stream]*destination.Filer
}

// Records implements export.Source.
func (f *fileSavingSource) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
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
		if f.x.saved += n; err != nil {
			return page, fmt.Errorf("keep the files of %s: %w", q.Stream, err)
		}
	}
	return page, nil
}
