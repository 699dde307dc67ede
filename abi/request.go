package abi

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A RequestMessage is a REQUEST line of the stdio profile: one request to a server.
// Others have functions for it.
type RequestMessage struct {
	ID string
	// Frame is what the request function takes; its body has no limit yet.
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

// A ReadMessage is a READ line of the stdio profile: it wants the next piece of the
// body that the last REQUEST was answered with.
type ReadMessage struct{ ID string }

// maxRequestID bounds the id of a REQUEST or READ line, in bytes.
const maxRequestID = 200

// requestMembers are what a REQUEST line and the request function have in common.
var requestMembers = []string{"method", "url", "headers", "timeout_ms", "wait_ms", "redirect", "max_bytes"}

// readRequest makes of a REQUEST line what the request function takes. Whether the
// request may be made is the binding's to say, as with that function.
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

// requestBody is the body of a REQUEST: text in body, bytes in body_base64.
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
