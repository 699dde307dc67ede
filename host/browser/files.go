package browser

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/egress"
)

// deliveries are the pictures and downloads that a run gives to its guest.
type deliveries struct {
	s      *Session
	offers atomic.Int64 // files that pages offered during the run
}

// Bounds of files.
const (
	maxUpload   = 100 << 20 // bytes of all files of one action
	maxDownload = 100 << 20
	maxFileName = 255
)

// files makes the uploads of one surface.
type files struct {
	s  *Session
	of *fleet.Surface
}

// Stage implements engine.Files. It makes private copies that the browser can read until release is
// called.
func (x files) Stage(ctx context.Context,
	list []engine.File) (staged []engine.StagedFile, release func(), refused *engine.Refusal) {
	dir, err := room(x.of)
	if err != nil {
		return nil, nil, x.s.asRefusal(engine.Upload, err)
	}
	release = func() { x.s.note("copies of uploads were not removed", os.RemoveAll(dir)) }
	left := int64(maxUpload)
	for i, f := range list {
		from, refused := x.source(ctx, f)
		if refused != nil {
			release()
			return nil, nil, refused
		}
		name := fileName(f)
		n, err := copyTo(filepath.Join(dir, hex.EncodeToString([]byte{byte(i)})), name, from, left, x.of.UID())
		err = errors.Join(err, from.Close())
		if err != nil {
			release()
			if errors.Is(err, errBig) {
				return nil, nil, refuse(engine.Upload, "invalid_request", "files: together they have more than 100 MiB")
			}
			return nil, nil, x.s.asRefusal(engine.Upload, err)
		}
		left -= n
		staged = append(staged, engine.StagedFile{Path: filepath.Join(dir, hex.EncodeToString([]byte{byte(i)}), name),
			Name: name, Bytes: n})
	}
	return staged, release, nil
}

// source opens what the guest named: a file of its mounts, or a stream handle.
func (x files) source(ctx context.Context, f engine.File) (io.ReadCloser, *engine.Refusal) {
	if f.Path == "" {
		if x.s.Owns(f.Handle) {
			return x.s.streams.take(f.Handle)
		}
		if x.s.o.Stream == nil {
			return nil, refuse(engine.Upload, "invalid_request", "files: there is no such handle")
		}
		from, err := x.s.o.Stream(ctx, f.Handle)
		if err != nil {
			return nil, refuse(engine.Upload, "invalid_request", "files: the handle cannot be read")
		}
		return from, nil
	}
	if x.s.o.File == nil {
		return nil, refuse(engine.Upload, "invalid_request", "files: the run has no files")
	}
	from, err := x.s.o.File(ctx, f.Path)
	if err != nil {
		return nil, refuse(engine.Upload, "invalid_request", "files: the file cannot be read")
	}
	return from, nil
}

// fileName returns the name for the page: a last path element.
func fileName(f engine.File) string {
	return lastElement(cmp.Or(f.Name, f.Path))
}

// lastElement returns the last element of a name, at most 255 bytes.
func lastElement(name string) string {
	name = path.Base(strings.ReplaceAll(name, "\\", "/"))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '/' {
			return '_'
		}
		return r
	}, name)
	for len(name) > maxFileName {
		name = name[:len(name)-1]
	}
	if name = strings.ToValidUTF8(name, "_"); name == "" || name == "." || name == ".." {
		return "file"
	}
	return name
}

// room makes a directory within the surface's that its browser can read.
func room(of *fleet.Surface) (string, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	dir := filepath.Join(of.Home(), "upload-"+hex.EncodeToString(b[:]))
	return dir, private(dir, of.UID())
}

// private makes a directory for the browser's user only.
func private(dir string, uid int) error {
	if err := os.Mkdir(dir, 0o700); err != nil || uid == 0 {
		return err
	}
	return os.Lchown(dir, uid, uid)
}

var errBig = errors.New("too large")

// copyTo writes a file in a new directory, for the browser's user only.
func copyTo(dir, name string, from io.Reader, most int64, uid int) (n int64, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(to, io.LimitReader(from, most+1))
	if err == nil && n > most {
		err = errBig
	}
	if err == nil && uid != 0 {
		err = errors.Join(to.Chown(uid, uid), root.Lchown(".", uid, uid))
	}
	return n, errors.Join(err, to.Close())
}

// keepPicture makes a picture readable for the guest.
func (dl *deliveries) keepPicture(p page.Picture) (any, *engine.Refusal) {
	handle, refused := dl.s.streams.picture(p.Data)
	if refused != nil {
		return nil, refused
	}
	return map[string]any{"handle": handle, "mime": p.MIME, "width": p.Width, "height": p.Height, "bytes": len(p.Data)},
		nil
}

// keepDownload makes a finished download a stream handle. The browser can change what is on the
// disk, so only a regular file within the surface's directory is opened. It reports false if too
// many handles are open; the guest is told so and gets the file after closing some.
func (dl *deliveries) keepDownload(of *fleet.Surface, d page.Download) (told any, held bool) {
	lost := map[string]any{"name": lastElement(d.Name), "failed": true}
	if dl.s.streams.full() { // the file stays where it is
		return map[string]any{"name": lastElement(d.Name), "failed": false, "finished": true, "reason": "too_many_open"},
			false
	}
	f, err := openWithin(of.Home(), d.Path)
	if err != nil {
		dl.s.note("a download was not kept", err)
		return lost, true
	}
	fi, err := f.Stat()
	if err != nil || fi.Size() > maxDownload { // it grew afterwards
		dl.s.note("a download was not kept", errors.Join(err, f.Close()))
		return lost, true
	}
	kind := kindOf(f)
	content, size, err := dl.unsealed(f, fi.Size())
	if err != nil {
		dl.s.note("a download was not kept", errors.Join(err, f.Close()))
		return lost, true
	}
	handle, refused := dl.s.streams.file(limited{content, f})
	if refused != nil {
		return lost, true
	}
	return map[string]any{"handle": handle, "name": lastElement(d.Name), "mime": cmp.Or(d.MIME, kind), "bytes": size,
		"url_host": d.Host}, true
}

// unsealed returns a file's content with sealed values replaced by handles, and its size.
func (dl *deliveries) unsealed(f io.ReaderAt, size int64) (content io.Reader, bytes int64, err error) {
	whole := io.NewSectionReader(f, 0, size)
	list := dl.s.seals.spellings()
	content = egress.Unsealed(whole, list)
	if content == io.Reader(whole) {
		return whole, size, nil
	}
	if bytes, err = io.Copy(io.Discard, content); err != nil {
		return nil, 0, err
	}
	return egress.Unsealed(io.NewSectionReader(f, 0, size), list), bytes, nil
}

// kindOf returns the media type detected from a file's first bytes.
func kindOf(f io.ReaderAt) string {
	first := make([]byte, 512)
	n, _ := f.ReadAt(first, 0) // short at the end of the file
	kind, _, _ := strings.Cut(http.DetectContentType(first[:n]), ";")
	return kind
}

// maxDownloads bounds the files that may be saved in a run.
const maxDownloads = 20

// mayDownload counts one more file of the run. It reports false beyond maxDownloads.
func (dl *deliveries) mayDownload() bool {
	return dl.s.o.Request.Downloads && dl.offers.Add(1) <= maxDownloads
}

// offered tells viewers what happened to a file that a page offered. The guest is told of downloads
// that its own actions began.
func (dl *deliveries) offered(d page.Download) {
	code := "download_failed"
	switch {
	case dl.s.o.Notice == nil:
		return
	case d.Denied:
		code = "download_denied"
	case d.Done:
		code = "download_done"
	}
	dl.s.o.Notice(code, dl.s.seals.Hide(lastElement(d.Name)))
}

type limited struct {
	io.Reader
	io.Closer
}

// openWithin opens a regular file below a directory and removes its name.
func openWithin(dir, name string) (*os.File, error) {
	local, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(local) {
		return nil, fs.ErrInvalid
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, err := root.Lstat(local)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	f, err := root.Open(local)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(fi, now) {
		return nil, errors.Join(fs.ErrInvalid, err, f.Close())
	}
	_ = root.Remove(local) // read once; if it stays it is removed with the directory
	return f, nil
}
