package network

import (
	"encoding/binary"
	"strconv"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/egress"
)

// appendReply appends the reply of the request function to b.
func appendReply(b []byte, r *egress.Response, handle uint32) []byte {
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
func inlineReply(r *egress.Response, handle uint32, body []byte) []byte {
	b := appendReply(make([]byte, 4, 512+len(body)), r, handle)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return append(b, body...)
}
