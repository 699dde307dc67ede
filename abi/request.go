package abi

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A RequestMessage is a REQUEST line of the stdio profile: an HTTP request. ABI connectors
// import functions for it.
type RequestMessage struct {
	ID string
	// Frame is the argument of the request function. The size of its body is not checked
	// yet.
	Frame []byte
}

// Type returns REQUEST.
func (*RequestMessage) Type() string { return requestKind.name }
func (*RequestMessage) message()     {}

// Type returns READ.
func (*ReadMessage) Type() string { return readKind.name }
func (*ReadMessage) message()     {}

var requestKind = kind{name: "REQUEST", step: StepMessage, read: readRequest}

var readKind = kind{name: "READ", step: StepMessage, read: readRead}

// A ReadMessage is a READ line of the stdio profile, which asks for the next piece of the
// body of the last REQUEST's answer.
type ReadMessage struct{ ID string }

// maxRequestID bounds the id of a REQUEST or READ line, in bytes.
const maxRequestID = 200

// requestMembers are the members that a REQUEST line shares with the request function.
var requestMembers = []string{"method", "url", "headers", "timeout_ms", "wait_ms", "redirect", "max_bytes"}

// readRequest converts a REQUEST line to the argument of the request function. The binding
// decides whether the request is allowed.
func readRequest(r *reader) Message {
	m := &RequestMessage{ID: r.text("id", VFrameMalformed, maxRequestID)}
	body := r.requestBody()
	head := []byte{0, 0, 0, 0}
	for name, v := range r.msg.Members() {
		if !slices.Contains(requestMembers, name) {
			continue
		}
		head = append(head, "{,"[min(len(head)-4, 1)])
		head = append(strictjson.AppendQuote(head, name), ':')
		head = append(head, v.Raw...)
	}
	if len(head) == 4 {
		head = append(head, '{')
	}
	head = append(head, '}')
	binary.LittleEndian.PutUint32(head, uint32(len(head)-4))
	m.Frame = append(head, body...)
	return m
}

// requestBody returns the body of a REQUEST: text in body, or bytes in body_base64.
func (r *reader) requestBody() []byte {
	text, packed := r.member("body"), r.member("body_base64")
	s, isText := text.Text()
	p, isPacked := packed.Text()
	switch {
	case !text.Absent() && (!isText || !packed.Absent()):
		r.fail(VFrameMalformed, "body")
	case !packed.Absent():
		body, err := base64.StdEncoding.DecodeString(p)
		if !isPacked || err != nil {
			r.fail(VFrameMalformed, "body_base64")
		}
		return body
	}
	return []byte(s)
}

func readRead(r *reader) Message {
	return &ReadMessage{ID: r.text("id", VFrameMalformed, maxRequestID)}
}
