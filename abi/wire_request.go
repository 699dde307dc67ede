package abi

import (
	"encoding/binary"
	"fmt"
	"time"
)

// AppendRead encodes the request of CallRead: up to most bytes of a handle.
func AppendRead(b []byte, handle, most uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, handle), most)
}

// ParseRead decodes exactly the request of CallRead.
func ParseRead(b []byte) (handle, most uint32, err error) {
	d := wireDecoder{b: b}
	handle, most = d.u32(), d.u32()
	d.check(most <= MaxReadChunk, "size")
	return handle, most, d.end("read")
}

// ParseClose decodes exactly the request of CallClose: a handle.
func ParseClose(b []byte) (handle uint32, err error) {
	d := wireDecoder{b: b}
	handle = d.u32()
	return handle, d.end("close")
}

// ParseStdin decodes exactly the request of CallStdin: the most bytes wanted.
func ParseStdin(b []byte) (most uint32, err error) {
	d := wireDecoder{b: b}
	most = d.u32()
	d.check(most >= 1 && most <= MaxReadChunk, "size")
	return most, d.end("stdin")
}

// ParseSleep decodes exactly the request of CallSleep.
func ParseSleep(b []byte) (time.Duration, error) {
	d := wireDecoder{b: b}
	t := d.duration()
	return t, d.end("sleep")
}

// ParseDiag decodes exactly the request of CallDiag. text shares memory with b.
func ParseDiag(b []byte) (fd uint8, text []byte, err error) {
	d := wireDecoder{b: b}
	fd = d.u8()
	d.check(fd == 1 || fd == 2, "fd")
	if err := d.err; err != nil {
		return 0, nil, fmt.Errorf("diag: %w", err)
	}
	return fd, d.b, nil
}
