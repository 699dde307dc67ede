package run

import (
	"bytes"
	"encoding/binary"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

// stdio is the stdio profile's two pipes.
type stdio struct {
	line   []byte // of fd 1, not ended yet
	out    []byte // for fd 0, not read yet
	parts  []part // what out consists of
	eof    bool   // after DONE was accepted
	closed bool   // the guest closed fd 0
	read   uint32 // the read that waits; valid when reading
	room   int
	wants  bool

	exchange exchange
}

// A part is one line on its way to the guest.
type part struct {
	name string // start, interaction_response or response
	left int
}

// feed queues a line for the guest's fd 0.
func (s *stdio) feed(line []byte, name string) {
	s.out = append(s.out, line...)
	s.parts = append(s.parts, part{name, len(line)})
}

// undelivered names the line the guest has not read, for connector_stdin_closed.
func (s *stdio) undelivered() string {
	if !s.closed || len(s.parts) == 0 || s.parts[0].name == "response" {
		return "" // what a server said may go unread
	}
	return s.parts[0].name
}

// feed queues a line for the guest.
func (cl *calls) feed(line []byte, name string) { cl.stdio.feed(line, name) }

// unread queues a line for a guest that closed its input: it will never be read.
func (cl *calls) unread(name string) {
	if cl.stdio.closed {
		cl.stdio.feed([]byte{'\n'}, name)
	}
}

// undelivered names the line that the guest did not read, "" for none.
func (cl *calls) undelivered() string { return cl.stdio.undelivered() }

// stdin is a read of fd 0: it waits until there is a byte or the end.
func (cl *calls) stdin(in sandbox.Inbound) {
	if len(in.Payload) != 4 {
		cl.replyError(in.ID, abi.EINVAL, "invalid_request", "a read wants a size")
		return
	}
	s := &cl.stdio
	s.read, s.wants = in.ID, true
	s.room = int(min(binary.LittleEndian.Uint32(in.Payload), abi.MaxReadChunk))
	cl.serveStdin()
}

// serveStdin answers a waiting read if there is something to say.
func (cl *calls) serveStdin() {
	s := &cl.stdio
	if !s.wants || len(s.out) == 0 && !s.eof {
		return
	}
	n := min(s.room, len(s.out))
	s.wants = false
	cl.reply(s.read, s.out[:n])
	if s.out = s.out[n:]; len(s.out) == 0 {
		s.out = nil // START may be large
	}
	for n > 0 {
		taken := min(n, s.parts[0].left)
		s.parts[0].left -= taken
		if n -= taken; s.parts[0].left == 0 {
			s.parts = s.parts[1:]
		}
	}
}

// lines takes p of what the guest wrote to fd 1 and processes every line that is
// complete. The write returns when they are: kept says that it waits.
func (cl *calls) lines(in sandbox.Inbound, p []byte) (kept bool) {
	s := &cl.stdio
	for cl.outcome.ready() {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		line := p[:i]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
		}
		p = p[i+1:]
		cl.line(line)
		s.line = s.line[:0]
		if m := s.exchange.line; m != nil {
			s.exchange.line = nil
			if cl.request(in, m, p) {
				return true
			}
		}
	}
	defer cl.reply(in.ID, nil)
	if len(s.line)+len(p) > cl.plan.Limits.FrameBytes+1 { // one byte for a CR
		cl.outcome.violate(cl.proto.Fault(abi.VFrameTooLarge, "", "limit "+itoa(cl.plan.Limits.FrameBytes)))
		return false
	}
	s.line = append(s.line, p...)
	if phase := cl.proto.Phase(); (phase == abi.Waiting || phase == abi.Finishing) && len(bytes.TrimSpace(s.line)) > 0 {
		cl.outcome.violate(cl.proto.Step(abi.StepMessage)) // it need not be a whole line
	}
	return false
}

// line processes one line without its line feed.
func (cl *calls) line(line []byte) {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	m, v := cl.proto.Line(line)
	if v != nil {
		cl.outcome.violate(v)
		return
	}
	cl.handle(m, 0)
}

// lastLine processes a line that the guest's exit ended.
func (cl *calls) lastLine() {
	if line := cl.stdio.line; len(line) > 0 && cl.outcome.ready() {
		cl.stdio.line = nil
		cl.line(line)
	}
}
