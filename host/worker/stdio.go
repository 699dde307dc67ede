package worker

import (
	"bytes"
	"encoding/binary"
	"io"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/sluicehost/sluice/abi"
)

// stdinAhead is the minimum number of bytes that a read of fd 0 requests.
const stdinAhead = 64 << 10

// A stdin is fd 0 of a stdio connector, with START and then the owner's answers. For an ABI connector, fd 0 is at its
// end from the start.
type stdin struct{ guest *guest }

// Read returns what the host has. It only waits for the first byte.
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

// A stdout is fd 1 of a stdio connector. Every write waits until the host has processed the lines in it. An incomplete
// line is buffered, so that a connector that writes single bytes does not make a call for each. The host gets it with
// the rest of the line, before the guest reads or sleeps, or at the end.
type stdout struct{ guest *guest }

// Write sends all of b in chunks, except for an incomplete last line.
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

// flushLine sends what stdout has buffered.
func (g *guest) flushLine() abi.Errno {
	if len(g.line) == 0 {
		return abi.OK
	}
	_, errno := g.relay.call(abi.CallStdout, g.line)
	g.line = g.line[:0]
	return errno
}

// A diagnostics is fd 2, or fd 1 of an ABI connector, for log text.
type diagnostics struct {
	guest *guest
	fd    byte
	buf   []byte
}

// Write sends all of b in chunks.
func (d *diagnostics) Write(b []byte) (int, error) {
	if errno := d.guest.flushLine(); errno != abi.OK { // keep the order of both
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
