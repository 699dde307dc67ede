package badger

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// blockBytes is the number of bytes of a long content that one checksum covers.
const blockBytes = 256 << 10

// A contentLocation says where a long content is: in a file that is written once. Names are never reused, so erasing a
// content cannot affect the same content stored again.
type contentLocation struct {
	Name string   `json:"name"`
	Size int64    `json:"size"`
	Sums []uint32 `json:"sums"` // one per block
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func blockSum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func decodeLocation(payload []byte) (p contentLocation, err error) {
	if err := json.Unmarshal(payload, &p); err != nil {
		return p, store.Corrupt("place of a file: %v", err)
	}
	if p.Size < 0 || int64(len(p.Sums)) != (p.Size+blockBytes-1)/blockBytes || p.Name == "" ||
		p.Name != filepath.Base(p.Name) {
		return p, store.Corrupt("place of a file: it cannot be")
	}
	return p, nil
}

// contentFiles holds the files of long contents, in a directory or, with dir "", in memory.
type contentFiles struct {
	dir  string
	boot string // prefix of the names that this process assigns
	next atomic.Uint64

	mu          sync.Mutex // guards the fields below
	memory      map[string][]byte
	removals    []pendingRemoval
	hasRemovals atomic.Bool // removals is not empty
}

// A pendingRemoval is removed once no reader sees a commit before seq, which dropped it.
type pendingRemoval struct {
	name string
	seq  uint64
}

func newContentFiles(dir string) *contentFiles {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	p := &contentFiles{boot: hex.EncodeToString(b[:]), memory: map[string][]byte{}}
	if dir != "" {
		p.dir = filepath.Join(dir, "files")
	}
	return p
}

// A contentReader is a file open for reading.
type contentReader interface {
	io.ReaderAt
	io.Closer
}

type memoryContent struct{ *bytes.Reader }

func (memoryContent) Close() error { return nil }

func (p *contentFiles) open(name string) (contentReader, error) {
	if p.dir != "" {
		return os.Open(filepath.Join(p.dir, name))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.memory[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return memoryContent{bytes.NewReader(b)}, nil
}

// A contentWriter is a file being written.
type contentWriter struct {
	p     *contentFiles
	place contentLocation
	f     *os.File
	sent  int64 // bytes that the kernel was asked to write back
	mem   []byte
	block int // bytes of the last block that sum covers
	sum   uint32
}

func (p *contentFiles) create() (*contentWriter, error) {
	w := &contentWriter{p: p, place: contentLocation{Name: fmt.Sprintf("%s-%x", p.boot, p.next.Add(1))}}
	if p.dir == "" {
		return w, nil
	}
	path := filepath.Join(p.dir, w.place.Name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(p.dir, 0o700); err == nil {
			err = bulk.SyncDir(filepath.Dir(p.dir))
		}
		if err == nil {
			f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	w.f = f
	return w, err
}

func (w *contentWriter) Write(b []byte) (int, error) {
	if w.f != nil {
		if n, err := w.f.Write(b); err != nil {
			return n, err
		}
	} else {
		w.mem = append(w.mem, b...)
	}
	w.place.Size += int64(len(b))
	if n := w.place.Size - w.sent; w.f != nil && n >= writebackBytes {
		writeback(w.f, w.sent, n)
		w.sent = w.place.Size
	}
	for rest := b; len(rest) > 0; {
		n := min(len(rest), blockBytes-w.block)
		w.sum = crc32.Update(w.sum, castagnoli, rest[:n])
		if rest, w.block = rest[n:], w.block+n; w.block == blockBytes {
			w.place.Sums, w.sum, w.block = append(w.place.Sums, w.sum), 0, 0
		}
	}
	return len(b), nil
}

// writebackBytes is how much of a long content is buffered before the kernel is asked to write it back, so that little
// is left for the sync at the end.
const writebackBytes = 8 << 20

// finish makes the file and its name durable.
func (w *contentWriter) finish() (contentLocation, error) {
	if w.block > 0 {
		w.place.Sums, w.block = append(w.place.Sums, w.sum), 0
	}
	if w.f == nil {
		w.p.mu.Lock()
		defer w.p.mu.Unlock()
		w.p.memory[w.place.Name] = w.mem
		return w.place, nil
	}
	err := errors.Join(w.f.Sync(), w.f.Close())
	if err == nil {
		err = bulk.SyncDir(w.p.dir)
	}
	return w.place, err
}

// abandon removes a file that is not wanted.
func (w *contentWriter) abandon() {
	if w.f != nil {
		_ = w.f.Close()
	}
	_ = w.p.remove(w.place.Name)
}

func (p *contentFiles) remove(name string) error {
	if p.dir != "" {
		return os.Remove(filepath.Join(p.dir, name))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.memory, name)
	return nil
}

// removeLater schedules the removal of files to which nothing refers from commit seq on.
func (p *contentFiles) removeLater(seq uint64, names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		p.removals = append(p.removals, pendingRemoval{name, seq})
	}
	p.hasRemovals.Store(len(p.removals) > 0)
}

// removePending removes files that are to be removed and that no reader can see any more. What cannot be removed goes
// when the store is next opened.
func (s *disk) removePending() {
	p := s.contentFiles
	if !p.hasRemovals.Load() {
		return
	}
	oldest := s.visible.oldest()
	var gone, kept []pendingRemoval
	p.mu.Lock()
	for _, d := range p.removals {
		if d.seq <= oldest {
			gone = append(gone, d)
		} else {
			kept = append(kept, d)
		}
	}
	p.removals = kept
	p.hasRemovals.Store(len(kept) > 0)
	p.mu.Unlock()
	for _, d := range gone {
		if err := p.remove(d.name); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.opts.Logger.Warn("remove file", "err", err)
		}
	}
}

// sweepContentFiles removes files of earlier processes that no commit refers to.
func (s *disk) sweepContentFiles(ctx context.Context) error {
	if s.contentFiles.dir == "" {
		return nil
	}
	entries, err := os.ReadDir(s.contentFiles.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	left := map[string]bool{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), s.contentFiles.boot) {
			left[e.Name()] = true
		}
	}
	if len(left) == 0 {
		return nil
	}
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	defer r.close()
	err = r.scan([]byte{kindLocation}, nil, false, func(_, payload []byte) (bool, error) {
		p, err := decodeLocation(payload)
		delete(left, p.Name)
		return true, err
	})
	if err != nil {
		return err
	}
	for name := range left {
		if err := os.Remove(filepath.Join(s.contentFiles.dir, name)); err != nil {
			s.opts.Logger.Warn("remove file", "err", err)
		}
	}
	return nil
}
