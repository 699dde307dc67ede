package run

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/run/redact"
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
func (cl *calls) feed(line []byte, name string) {
	s := &cl.stdio
	s.out = append(s.out, line...)
	s.parts = append(s.parts, part{name, len(line)})
}

// unread queues a line for a guest that closed its input: it will never be read.
func (cl *calls) unread(name string) {
	if cl.stdio.closed {
		cl.feed([]byte{'\n'}, name)
	}
}

// undelivered names the line that the guest did not read, "" for none.
func (cl *calls) undelivered() string {
	s := &cl.stdio
	if !s.closed || len(s.parts) == 0 || s.parts[0].name == "response" {
		return "" // what a server said may go unread
	}
	return s.parts[0].name
}

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

// exchange is the network of a stdio connector that speaks lines: one request
// at a time, made by the same binding and under the same policy as by its functions.
type exchange struct {
	line   abi.Message // REQUEST or READ that is to be handled
	id     string      // of the line that the guest's write waits for, "" without one
	rest   []byte      // what came behind that line in the same write
	handle uint32      // of a body that there is more of, 0 without
	held   []byte      // its bytes that are read and make no whole character yet
}

// pieceBytes is how much of a body one line brings. Written as text it takes no more
// than six times as much.
const pieceBytes = 128 * abi.KiB

// request handles a REQUEST or READ line. It reports whether the guest's write, in,
// waits for it; what follows the line in the write is rest.
func (cl *calls) request(in sandbox.Inbound, m abi.Message, rest []byte) (waits bool) {
	x := &cl.stdio.exchange
	if len(cl.stdio.out) > 0 {
		cl.outcome.violate(cl.proto.Fault(abi.VOutputWhileWaiting, m.Type(), "the answer before it was not read"))
		return false
	}
	call, id, frame := abi.CallRead, "", []byte(nil)
	switch m := m.(type) {
	case *abi.RequestMessage:
		call, id, frame = abi.CallNetworkRequest, m.ID, m.Frame
	case *abi.ReadMessage:
		id = m.ID
	}
	network := cl.bindings.taking(abi.CallNetworkRequest, nil)
	if _, declared := cl.plan.manifest.Bindings[abi.BindingNetwork]; !declared || network == nil {
		const text = "no host is approved for this connection"
		cl.output.logged("warn", "denied: "+text, strictjson.Value{})
		cl.answer(id, abi.EDENIED, errorText("binding_not_approved", text))
		return false
	}
	x.id, x.rest = id, bytes.Clone(rest)
	in.Call = call // what is told of it afterwards is told of that call
	cl.outside(in, call, func(ctx context.Context, _ abi.Call, _ []byte) ([]byte, abi.Errno) {
		if call == abi.CallRead {
			return x.more(ctx, network.Handle, nil)
		}
		return x.make(ctx, network.Handle, frame)
	}, func() ([]byte, abi.Errno) { return lostBy(network, call, frame) })
	return true
}

// handler is [Network]'s Handle.
type handler func(context.Context, abi.Call, []byte) ([]byte, abi.Errno)

// make makes a request. The body of the one before is not read any further.
func (x *exchange) make(ctx context.Context, handle handler, frame []byte) ([]byte, abi.Errno) {
	x.close(ctx, handle)
	reply, errno := handle(ctx, abi.CallNetworkRequest, frame)
	if errno != abi.OK {
		return reply, errno
	}
	v, err := strictjson.Parse(reply, strictjson.ParseOptions{})
	if err != nil {
		return errorText("internal", "the answer cannot be told"), abi.EIO
	}
	head := []byte{}
	for name, m := range v.Members() {
		if name == "handle" {
			n, _ := m.SafeInteger()
			x.handle = uint32(n)
			continue
		}
		head = append(append(strictjson.AppendQuote(append(head, ','), name), ':'), m.Raw...)
	}
	line, errno := x.more(ctx, handle, head)
	if errno != abi.OK { // the head is an answer; what happened to the body is told by READ
		return append(head, `,"body":"","more":true`...), abi.OK
	}
	return line, errno
}

// more appends the next piece of the body to the members of a line.
func (x *exchange) more(ctx context.Context, handle handler, line []byte) ([]byte, abi.Errno) {
	if x.handle == 0 {
		return errorText("unknown_handle", "there is no more of a body"), abi.ENOENT
	}
	body := x.held
	x.held = nil
	for more := true; more && len(body) < pieceBytes; {
		piece, errno := handle(ctx, abi.CallRead, abi.AppendRead(nil, x.handle, uint32(pieceBytes-len(body))))
		if errno != abi.OK && len(body) == 0 {
			return piece, errno
		}
		if errno != abi.OK {
			break // the next READ is told
		}
		body = append(body, piece...)
		if more = len(piece) > 0; !more {
			x.close(ctx, handle)
		}
	}
	whole := body
	if x.handle != 0 {
		whole = wholeText(body)
	}
	if utf8.Valid(whole) && (len(whole) > 0 || len(body) == 0) {
		x.held = slices.Clone(body[len(whole):])
		line = strictjson.AppendQuote(append(line, `,"body":`...), whole)
	} else {
		line = append(line, `,"body_base64":"`...)
		line = append(base64.StdEncoding.AppendEncode(line, body), '"')
	}
	if x.handle != 0 {
		line = append(line, `,"more":true`...)
	}
	return line, abi.OK
}

// wholeText leaves out the beginning of a character at the end of a piece.
func wholeText(p []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if at := len(p) - n; utf8.RuneStart(p[at]) {
			if !utf8.FullRune(p[at:]) {
				return p[:at]
			}
			break
		}
	}
	return p
}

func (x *exchange) close(ctx context.Context, handle handler) {
	if x.handle != 0 {
		_, _ = handle(ctx, abi.CallClose, binary.LittleEndian.AppendUint32(nil, x.handle)) // it is ours
	}
	x.handle, x.held = 0, nil
}

// lineAnswered gives the guest the line it waits for and goes on with its write.
func (cl *calls) lineAnswered(f finishedCall) {
	x := &cl.stdio.exchange
	id, rest := x.id, x.rest
	x.id, x.rest = "", nil
	if cl.outcome.cancelled() {
		cl.replyError(f.in.ID, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
		return
	}
	cl.answer(id, f.errno, f.reply)
	if cl.history.leaves(time.Now(), true); !cl.outcome.ready() {
		return
	}
	cl.lines(sandbox.Inbound{ID: f.in.ID, Call: abi.CallStdout}, rest)
}

// answer feeds a RESPONSE: members of an answer, or the error text of a failure.
func (cl *calls) answer(id string, errno abi.Errno, text []byte) {
	line := strictjson.AppendQuote([]byte(`{"type":"RESPONSE","id":`), id)
	if errno == abi.OK {
		line = append(line, text...)
	} else {
		line = strictjson.AppendQuote(append(line, `,"error":{"errno":`...), errno.String())
		if v, err := strictjson.Parse(text, strictjson.ParseOptions{}); err == nil && v.Is(strictjson.KindObject) && v.Len() > 0 {
			line = append(append(line, ','), bytes.TrimLeft(text, " {")...) // ends the object
		} else {
			line = append(line, '}')
		}
	}
	cl.feed(append(line, "}\n"...), "response")
	cl.serveStdin()
}

func errorText(code, message string) []byte {
	text, _ := redact.Marshal(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{code, message}) // two strings
	return text
}
