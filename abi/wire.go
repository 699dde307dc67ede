package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The wire is the protocol between host and worker over one stream socket: messages with a
// header and a payload, little-endian. It is internal and versioned with the binary, but
// each side treats the other's bytes as hostile: a worker may have been taken over by its
// guest.
//
//	 0        4        8      10      12
//	 +--------+--------+-------+-------+---------…
//	 | length |   id   | call  | errno | payload
//	 +--------+--------+-------+-------+---------…
//
// The worker numbers its messages 1, 2, 3 …; a reply repeats the id and the call of its
// request. emit, credit, hello and load have no reply.

const WireHeaderBytes = 12

// WireSlack is the room for encoding that a message gets beyond the limit of its content.
const WireSlack = 64 * KiB

// The maximum sizes of single transfers between a guest and the host, in bytes.
const (
	MaxStdoutChunk = 64 * KiB // of one CallStdout or CallDiag
	MaxReadChunk   = MiB      // of one CallRead or CallStdin
	MaxLoadBytes   = 4 * MiB  // of the payload of CallLoad
	MaxRequestBody = 256 * MiB
)

// The credit window of emit.
const (
	CreditFrames = 4
	CreditBytes  = 4 * MiB
)

// ErrWire is wrapped by every error about a malformed message. The receiver ends the
// connection: worker_protocol_error.
var ErrWire = errors.New("malformed worker message")

// A WireHeader precedes every payload.
type WireHeader struct {
	Length uint32 // bytes of payload
	ID     uint32
	Call   Call
	Errno  Errno // of a reply; in a credit it ends emit (see Credit)
}

// Append appends the encoded header to b.
func (h WireHeader) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.Length)
	b = binary.LittleEndian.AppendUint32(b, h.ID)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.Call))
	return binary.LittleEndian.AppendUint16(b, uint16(h.Errno))
}

// ParseWireHeader decodes the first WireHeaderBytes bytes of b. It refuses unknown errnos;
// WireLimits checks calls and lengths.
func ParseWireHeader(b []byte) (WireHeader, error) {
	if len(b) < WireHeaderBytes {
		return WireHeader{}, fmt.Errorf("%w: header of %d bytes", ErrWire, len(b))
	}
	h := WireHeader{
		Length: binary.LittleEndian.Uint32(b),
		ID:     binary.LittleEndian.Uint32(b[4:]),
		Call:   Call(binary.LittleEndian.Uint16(b[8:])),
		Errno:  Errno(binary.LittleEndian.Uint16(b[10:])),
	}
	if !h.Errno.Known() {
		return h, fmt.Errorf("%w: errno %d", ErrWire, uint16(h.Errno))
	}
	return h, nil
}

// WireLimits bounds payloads before anything is allocated for them. Both sides use the same
// values, which CallLoad carries.
type WireLimits struct {
	Frame   uint32 // messages and frames
	Request uint32 // body of a network request (network.request_body)
	Reply   uint32 // any reply to the worker; START is the largest
}

// DefaultWireLimits returns the limits that follow from DefaultLimits.
func DefaultWireLimits() WireLimits {
	d := DefaultLimits()
	return WireLimits{Frame: uint32(d.FrameBytes), Request: 16 * MiB, Reply: uint32(d.StartBytes)}
}

// Valid reports whether the limits are within their hard maxima.
func (l WireLimits) Valid() bool {
	return l.Frame >= 1 && l.Frame <= 2*MiB+64*KiB &&
		l.Request >= 1 && l.Request <= MaxRequestBody &&
		l.Reply >= 64*KiB && l.Reply <= 64*MiB
}

// FromWorker returns the maximum payload of a message from a worker, in bytes, and whether
// a worker may send such a message at all.
func (l WireLimits) FromWorker(c Call) (most uint32, ok bool) {
	switch c {
	case CallStart:
		return 0, true
	case CallNetworkRequest, CallNetworkExchange:
		return l.Request + WireSlack, true
	case CallAttach, CallAttachPart:
		return MaxReadChunk + WireSlack, true
	case CallRead:
		return 8, true
	case CallClose, CallStdin:
		return 4, true
	case CallStdout:
		return MaxStdoutChunk, true
	case CallDiag:
		return 1 + MaxStdoutChunk, true
	case CallSleep:
		return 8, true
	case CallStdinEnd:
		return 0, true
	case CallHello, CallReady:
		return 4 * KiB, true
	case CallExit:
		return 64 * KiB, true
	case CallFault:
		return faultBytes, true
	}
	if c.IsMessage() || c.Binding() != "" {
		return l.Frame, true
	}
	if c >= CallFileOpen && c <= CallFileTimes {
		return MaxReadChunk + WireSlack, true
	}
	return 0, false
}

// FromHost is FromWorker for messages of the host: replies to guest calls, load and credit.
// The worker is as strict as the host, so that a mismatch shows at once.
func (l WireLimits) FromHost(c Call) (most uint32, ok bool) {
	switch c {
	case CallLoad:
		return MaxLoadBytes, true
	case CallCredit:
		return creditBytes, true
	case CallClock:
		return clockBytes, true
	case CallReady, CallExit:
		return 0, true
	case CallHello, CallEmit, CallReply:
		return 0, false
	case CallStart:
		return l.Reply, true
	case CallRead, CallStdin:
		return MaxReadChunk, true
	}
	if _, ok := l.FromWorker(c); ok {
		return max(MaxReadChunk+WireSlack, MaxResponseBytes+WireSlack), true
	}
	return 0, false
}

// Pipelined reports whether c is sent without waiting for a reply.
func (c Call) Pipelined() bool { return c == CallEmit }

// Oversize reports whether a guest's request of n bytes exceeds its limit. It is called
// before the request is copied. For a message function the caller reports a violation, for
// any other ETOOBIG.
func (l WireLimits) Oversize(c Call, n uint64) bool {
	most, ok := l.FromWorker(c)
	return !ok || n > uint64(most)
}

// IsMessage reports whether c is a message function.
func (c Call) IsMessage() bool {
	return slices.ContainsFunc(Functions, func(f Function) bool { return f.Call == c && f.Message })
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}
