package browser

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser/engine"
)

// firstHandle is the binding's first stream handle. Lower ones belong to the network binding.
const firstHandle = binding.HandlesOf

// Bounds of open streams.
const (
	maxStreams     = abi.MaxHandles
	maxStreamBytes = 32 * abi.MiB // of pictures, which are kept in memory
	readPiece      = 256 * abi.KiB
)

// streams holds the pictures and downloads that the guest has stream handles of. It is safe for
// concurrent use.
type streams struct {
	mu    sync.Mutex // guards what follows
	items map[uint32]*stream
	next  uint32
	bytes int
}

// A stream is read once, from beginning to end.
type stream struct {
	from  io.ReadCloser
	bytes int // in memory
}

func newStreams() *streams { return &streams{items: map[uint32]*stream{}, next: firstHandle} }

var errStreams = &engine.Refusal{Code: "result_too_large",
	Message: "too many pictures and downloads are open; read and close some"}

// picture adds a picture and takes ownership of data.
func (s *streams) picture(data []byte) (uint32, *engine.Refusal) {
	return s.put(&stream{io.NopCloser(bytes.NewReader(data)), len(data)})
}

// file adds an open file, or closes it and refuses.
func (s *streams) file(f io.ReadCloser) (uint32, *engine.Refusal) { return s.put(&stream{from: f}) }

// full reports whether no file can be added now.
func (s *streams) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items) >= maxStreams || s.bytes > maxStreamBytes
}

func (s *streams) put(i *stream) (uint32, *engine.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil || len(s.items) >= maxStreams || s.bytes+i.bytes > maxStreamBytes {
		_ = i.from.Close() // it is only read
		return 0, errStreams
	}
	handle := s.next
	if s.next++; s.next == 1<<31 {
		s.next = firstHandle // a run does not get this far
	}
	if s.items[handle] != nil {
		_ = i.from.Close() // as above
		return 0, errStreams
	}
	s.items[handle] = i
	s.bytes += i.bytes
	return handle, nil
}

// Owns reports whether a stream handle belongs to the binding.
func (s *Session) Owns(handle uint32) bool { return handle >= firstHandle && handle < 1<<31 }

// read serves abi.CallRead: the next bytes, none at the end.
func (s *streams) read(ctx context.Context, payload []byte) ([]byte, abi.Errno) {
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

// take passes a handle's content to the host; the handle becomes invalid.
func (s *streams) take(handle uint32) (io.ReadCloser, *engine.Refusal) {
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
func (s *streams) drop(payload []byte) abi.Errno {
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

// clear closes all streams; none can be added afterwards.
func (s *streams) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		_ = i.from.Close() // it was only read
	}
	s.items, s.bytes = nil, 0
}
