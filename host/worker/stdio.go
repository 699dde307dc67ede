package worker

import (
	"bytes"
	"encoding/binary"
	"io"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/sluicehost/sluice/abi"
)

// stdinAhead is the least that one read of fd 0 fetches.
const stdinAhead = 64 << 10

// stdin is fd 0 of a stdio connector: START, then the owner's answers.
// An ABI connector's fd 0 is at its end from the start.
type stdin struct{ guest *guest }

// Read returns what the host has, waiting for the first byte only.
func (s stdin) Read(b []byte) (int, error) {
	g := s.guest
	if len(b) == 0 {
		return 0, nil
	}
	if len(g.input) == 0 {
		if errno := g.flushLine(); errno != abi.OK {
			return 0, experimentalsys.EIO
		}
		var request [4]byte
		binary.LittleEndian.PutUint32(request[:], uint32(min(max(len(b), stdinAhead), abi.MaxReadChunk)))
		reply, errno := g.relay.call(abi.CallStdin, request[:])
		if errno != abi.OK {
			return 0, experimentalsys.EIO
		}
		if len(reply) == 0 {
			return 0, io.EOF
		}
		g.input = append(g.input[:0], reply...)
	}
	n := copy(b, g.input)
	g.input = g.input[n:]
	return n, nil
}

// stdout is fd 1 of a stdio connector: every write waits until the host has
// processed the lines in it. What has no line feed yet is kept here, so that
// a connector which writes byte by byte does not cross to the host with each: the
// host has it with the rest of its line, before anything is read or slept, and at
// the end.
type stdout struct{ guest *guest }

// Write sends all of b in chunks, but for the beginning of a line.
func (s stdout) Write(b []byte) (int, error) {
	g := s.guest
	for sent := 0; sent < len(b); {
		n := min(len(b)-sent, abi.MaxStdoutChunk-len(g.line))
		chunk := b[sent : sent+n]
		g.line = append(g.line, chunk...)
		if len(g.line) == abi.MaxStdoutChunk || bytes.IndexByte(chunk, '\n') >= 0 {
			if errno := g.flushLine(); errno != abi.OK {
				return sent, experimentalsys.EIO
			}
		}
		sent += n
	}
	return len(b), nil
}

// flushLine sends what stdout keeps.
func (g *guest) flushLine() abi.Errno {
	if len(g.line) == 0 {
		return abi.OK
	}
	_, errno := g.relay.call(abi.CallStdout, g.line)
	g.line = g.line[:0]
	return errno
}

// diagnostics is fd 2, and fd 1 of an ABI connector: log text.
type diagnostics struct {
	guest *guest
	fd    byte
	buf   []byte
}

// Write sends all of b in chunks.
func (d *diagnostics) Write(b []byte) (int, error) {
	if errno := d.guest.flushLine(); errno != abi.OK { // the order of both stays
		return 0, experimentalsys.EIO
	}
	for sent := 0; ; {
		chunk := b[sent:min(len(b), sent+abi.MaxStdoutChunk)]
		if len(chunk) == 0 {
			return sent, nil
		}
		d.buf = append(append(d.buf[:0], d.fd), chunk...)
		if _, errno := d.guest.relay.call(abi.CallDiag, d.buf); errno != abi.OK {
			return sent, experimentalsys.EIO
		}
		sent += len(chunk)
	}
}
