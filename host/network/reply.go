package network

import (
	"encoding/binary"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// reply returns the reply of the request function.
func (r *Response) reply(handle uint32) []byte { return r.append(nil, handle) }

// append appends the reply to b.
func (r *Response) append(b []byte, handle uint32) []byte {
	b = strconv.AppendUint(append(b, `{"handle":`...), uint64(handle), 10)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(r.Status), 10)
	b = append(b, `,"headers":[`...)
	for i, pair := range r.Headers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendQuote(append(b, '['), pair[0])
		b = strictjson.AppendQuote(append(b, ','), pair[1])
		b = append(b, ']')
	}
	b = strictjson.AppendQuote(append(b, `],"url":`...), r.URL)
	b = strconv.AppendInt(append(b, `,"redirects":`...), int64(r.Redirects), 10)
	if r.Bytes >= 0 {
		b = strconv.AppendInt(append(b, `,"bytes":`...), r.Bytes, 10)
	}
	return append(b, '}')
}

// inlineReply returns the reply to a request that accepts inline bodies: the length of the JSON,
// the JSON, and the beginning of the body. Handle 0 says that the body is complete.
func (r *Response) inlineReply(handle uint32, body []byte) []byte {
	b := r.append(make([]byte, 4, 512+len(body)), handle)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return append(b, body...)
}

// text returns the error text of a failure.
func (e *Error) text() []byte {
	b := strictjson.AppendQuote([]byte(`{"code":`), e.Code)
	b = strictjson.AppendQuote(append(b, `,"message":`...), e.Message)
	switch {
	case e.Step != "":
		b = strictjson.AppendQuote(append(b, `,"detail":{"step":`...), e.Step)
		b = append(b, '}')
	case e.Errno == abi.ERATE:
		b = strconv.AppendInt(append(b, `,"detail":{"retry_after_ms":`...), e.RetryAfter, 10)
		b = append(b, '}')
	}
	return append(b, '}')
}
