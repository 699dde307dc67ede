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

// stdio is the state of the two pipes of a stdio connector.
type stdio struct {
	line   []byte // unfinished line from fd 1
	out    []byte // bytes for fd 0 that are not read yet
	parts  []part // the lines in out
	eof    bool   // fd 0 ends after out
	closed bool   // the guest closed fd 0
	read   uint32 // call id of the waiting read; valid if wants is set
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

// unread queues a line that will never be read if the guest has closed its input.
func (cl *calls) unread(name string) {
	if cl.stdio.closed {
		cl.feed([]byte{'\n'}, name)
	}
}

// undelivered returns the name of the line that the guest did not read, "" for none.
func (cl *calls) undelivered() string {
	s := &cl.stdio
	if !s.closed || len(s.parts) == 0 || s.parts[0].name == "response" {
		return "" // responses of servers may stay unread
	}
	return s.parts[0].name
}

// stdin handles a read of fd 0, which waits until there is a byte or the end.
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

// serveStdin answers a waiting read if there is data or the end.
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
		consumed := min(n, s.parts[0].left)
		s.parts[0].left -= consumed
		if n -= consumed; s.parts[0].left == 0 {
			s.parts = s.parts[1:]
		}
	}
}

// lines handles p, a part of what the guest wrote to fd 1, and processes every complete line. It replies to the
// write after that. kept reports that the write still waits.
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
		cl.outcome.violate(cl.proto.Step(abi.StepMessage)) // even for a part of a line
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

// lastLine processes an unfinished line when the guest has exited.
func (cl *calls) lastLine() {
	if line := cl.stdio.line; len(line) > 0 && cl.outcome.ready() {
		cl.stdio.line = nil
		cl.line(line)
	}
}

// exchange is the network of a stdio connector that speaks lines. It makes one request at a time, by the same
// binding and under the same policy as a connector that imports functions.
type exchange struct {
	line   abi.Message // REQUEST or READ that is to be handled
	id     string      // id of the line that the guest's write waits for, "" for none
	rest   []byte      // what followed that line in the same write
	handle uint32      // of a body that is not read to its end, 0 for none
	held   []byte      // bytes read that are an incomplete character
}

// pieceBytes is how much of a body one line carries, in bytes. Escaped as text it can grow up to six times.
const pieceBytes = 128 * abi.KiB

// request handles a REQUEST or READ line. It reports whether the guest's write, in, waits for it. rest is what
// follows the line in the write.
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
	network := cl.bindings.bindingFor(abi.CallNetworkRequest, nil)
	if _, declared := cl.plan.manifest.Bindings[abi.BindingNetwork]; !declared || network == nil {
		const text = "no host is approved for this connection"
		cl.output.handleLog("warn", "denied: "+text, strictjson.Value{})
		cl.answer(id, abi.EDENIED, errorText("binding_not_approved", text))
		return false
	}
	x.id, x.rest = id, bytes.Clone(rest)
	in.Call = call // for the log and spans
	cl.handleAsync(in, call, func(ctx context.Context, _ abi.Call, _ []byte) ([]byte, abi.Errno) {
		if call == abi.CallRead {
			return x.more(ctx, network.Handle, nil)
		}
		return x.make(ctx, network.Handle, frame)
	}, func() ([]byte, abi.Errno) { return lostReply(network, call, frame) })
	return true
}

// A handler handles a call, as binding.Binding.Handle does.
type handler func(context.Context, abi.Call, []byte) ([]byte, abi.Errno)

// make makes a request. The rest of the previous body is discarded.
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
	if errno != abi.OK { // the head is a response; the next READ reports the error of the body
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
			break // the next READ reports it
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

// wholeText cuts off an incomplete character at the end of a piece.
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
		_, _ = handle(ctx, abi.CallClose, binary.LittleEndian.AppendUint32(nil, x.handle)) // the handle exists
	}
	x.handle, x.held = 0, nil
}

// lineAnswered feeds the guest the line that it waits for, and continues its write.
func (cl *calls) lineAnswered(f finishedCall) {
	x := &cl.stdio.exchange
	id, rest := x.id, x.rest
	x.id, x.rest = "", nil
	if cl.outcome.cancelled() {
		cl.replyError(f.in.ID, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
		return
	}
	cl.answer(id, f.errno, f.reply)
	if cl.history.suspendIfLeaving(time.Now(), true); !cl.outcome.ready() {
		return
	}
	cl.lines(sandbox.Inbound{ID: f.in.ID, Call: abi.CallStdout}, rest)
}

// answer feeds a RESPONSE: the members of a response, or the error text of a failure.
func (cl *calls) answer(id string, errno abi.Errno, text []byte) {
	line := strictjson.AppendQuote([]byte(`{"type":"RESPONSE","id":`), id)
	if errno == abi.OK {
		line = append(line, text...)
	} else {
		line = strictjson.AppendQuote(append(line, `,"error":{"errno":`...), errno.String())
		if v, err := strictjson.Parse(text, strictjson.ParseOptions{}); err == nil &&
			v.Is(strictjson.KindObject) && v.Len() > 0 {
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
	}{code, message}) // two strings always encode
	return text
}
