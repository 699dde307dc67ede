package sandbox

import "sync"

// Payloads are read into buffers that are used again: a run of a million
// records allocates no more than one of a thousand. Small and large messages
// have pools of their own, so that a parked call does not hold a frame's memory.
const (
	smallBuffer = 4 << 10
	frameBuffer = 80 << 10   // the SDK's frames are 64 KiB and the last record
	largeBuffer = 1280 << 10 // anything up to the default frame limit
)

type buffer struct{ b []byte }

var buffers = [...]struct {
	size int
	pool *sync.Pool
}{
	{smallBuffer, newBuffers(smallBuffer)},
	{frameBuffer, newBuffers(frameBuffer)},
	{largeBuffer, newBuffers(largeBuffer)},
}

func newBuffers(size int) *sync.Pool {
	return &sync.Pool{New: func() any { return &buffer{b: make([]byte, size)} }}
}

// takeBuffer returns a buffer of at least n bytes. n was checked by the caller.
func takeBuffer(n int) *buffer {
	for _, class := range buffers {
		if n <= class.size {
			if b, ok := class.pool.Get().(*buffer); ok {
				return b
			}
		}
	}
	return &buffer{b: make([]byte, n)}
}

// giveBuffer makes b available again. Its content is no longer the giver's.
func giveBuffer(b *buffer) {
	for _, class := range buffers {
		if len(b.b) == class.size {
			class.pool.Put(b)
			return
		}
	}
}
