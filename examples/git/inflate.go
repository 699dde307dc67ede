package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
)

// An inflater takes objects out of their zlib streams. It is for one goroutine.
type inflater struct {
	src    bytes.Reader
	stream io.ReadCloser
}

// inflate returns the size bytes that src unpacks to. What stands behind the
// stream in src is ignored.
func (f *inflater) inflate(src []byte, size int) ([]byte, error) {
	out := make([]byte, size)
	if err := f.open(src); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(f.stream, out); err != nil {
		return nil, fmt.Errorf("inflate: %w", err)
	}
	return out, f.end()
}

// inflateAll returns what src unpacks to, at most limit bytes, and whether that was
// everything.
func (f *inflater) inflateAll(src []byte, limit int64) (out []byte, whole bool, err error) {
	if err := f.open(src); err != nil {
		return nil, false, err
	}
	out, err = io.ReadAll(io.LimitReader(f.stream, limit+1))
	if err != nil {
		return nil, false, fmt.Errorf("inflate: %w", err)
	}
	if int64(len(out)) > limit {
		return out[:limit], false, nil
	}
	return out, true, nil
}

func (f *inflater) open(src []byte) error {
	f.src.Reset(src)
	if f.stream == nil {
		var err error
		if f.stream, err = zlib.NewReader(&f.src); err != nil {
			return fmt.Errorf("inflate: %w", err)
		}
		return nil
	}
	if err := f.stream.(zlib.Resetter).Reset(&f.src, nil); err != nil {
		return fmt.Errorf("inflate: %w", err)
	}
	return nil
}

// end reads what must be the end of the stream, where its checksum is.
func (f *inflater) end() error {
	var more [1]byte
	n, err := f.stream.Read(more[:])
	if n > 0 {
		return fmt.Errorf("inflate: the object is longer than it says")
	}
	if err != nil && err != io.EOF {
		return fmt.Errorf("inflate: %w", err)
	}
	return nil
}
