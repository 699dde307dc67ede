package browser

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/engine"
)

// firstHandle is the first stream handle of the binding: those below are the
// network's, and none is ever both.
const firstHandle uint32 = 1 << 30

// Bounds of what lies on a shelf.
const (
	maxShelved      = abi.MaxHandles
	maxShelvedBytes = 32 * abi.MiB // of pictures, which are in memory
	readPiece       = 256 * abi.KiB
)

// A shelf holds what the binding gave a guest as stream handles: pictures and
// downloads. It is safe for concurrent use.
type shelf struct {
	mu    sync.Mutex // guards what follows
	items map[uint32]*item
	next  uint32
	bytes int
}

// An item is read once, from its beginning to its end.
type item struct {
	from  io.ReadCloser
	bytes int // in memory
}

func newShelf() *shelf { return &shelf{items: map[uint32]*item{}, next: firstHandle} }

var errShelf = &engine.Refusal{Code: "result_too_large", Message: "too many pictures and downloads are open; read and close some"}

// picture keeps bytes, which are the shelf's from now on.
func (s *shelf) picture(data []byte) (uint32, *engine.Refusal) {
	return s.put(&item{io.NopCloser(bytes.NewReader(data)), len(data)})
}

// file keeps an open file; a refusal closes it.
func (s *shelf) file(f io.ReadCloser) (uint32, *engine.Refusal) { return s.put(&item{from: f}) }

// full reports whether no file can be kept now.
func (s *shelf) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items) >= maxShelved || s.bytes > maxShelvedBytes
}

func (s *shelf) put(i *item) (uint32, *engine.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil || len(s.items) >= maxShelved || s.bytes+i.bytes > maxShelvedBytes {
		_ = i.from.Close() // it is only read
		return 0, errShelf
	}
	handle := s.next
	if s.next++; s.next == 1<<31 {
		s.next = firstHandle // a run does not come this far
	}
	if s.items[handle] != nil {
		_ = i.from.Close() // as above
		return 0, errShelf
	}
	s.items[handle] = i
	s.bytes += i.bytes
	return handle, nil
}

// Owns reports whether a stream handle (of read and close) is the binding's.
func (s *Session) Owns(handle uint32) bool { return handle >= firstHandle && handle < 1<<31 }

// read serves abi.CallRead: the next bytes, none at the end.
func (s *shelf) read(ctx context.Context, payload []byte) ([]byte, abi.Errno) {
	handle, most, err := abi.ParseRead(payload)
	if err != nil {
		return nil, abi.EINVAL
	}
	s.mu.Lock()
	i := s.items[handle]
	s.mu.Unlock()
	if i == nil {
		return nil, abi.ENOENT
	}
	if most == 0 || ctx.Err() != nil {
		return nil, abi.OK
	}
	buf := make([]byte, min(most, readPiece))
	n, err := io.ReadFull(i.from, buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, abi.EIO
	}
	return buf[:n], abi.OK
}

// take hands what a handle stands for to the host itself; it is the guest's no more.
func (s *shelf) take(handle uint32) (io.ReadCloser, *engine.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[handle]
	if i == nil {
		return nil, refuse(engine.Upload, "invalid_request", "files: there is no such handle")
	}
	delete(s.items, handle)
	s.bytes -= i.bytes
	return i.from, nil
}

// drop serves abi.CallClose.
func (s *shelf) drop(payload []byte) abi.Errno {
	handle, err := abi.ParseClose(payload)
	if err != nil {
		return abi.EINVAL
	}
	s.mu.Lock()
	i := s.items[handle]
	if i != nil {
		delete(s.items, handle)
		s.bytes -= i.bytes
	}
	s.mu.Unlock()
	if i == nil {
		return abi.ENOENT
	}
	_ = i.from.Close() // it was only read
	return abi.OK
}

// clear closes everything; nothing can be put afterwards.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		_ = i.from.Close() // it was only read
	}
	s.items, s.bytes = nil, 0
}
