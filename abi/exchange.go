package abi

import (
	"encoding/binary"
	"errors"
)

// The exchange function of the network binding carries several requests and answers at
// once. A request begins with the number of answers to wait for. A reply holds all answers
// that are ready, including those to requests of earlier calls. Both are little-endian,
// without padding:
//
//	request  least u32  asked*        asked   id u32             size u32  request frame of the request function
//	reply    answer*                  answer  id u32  errno u32  size u32  its reply, or error text after a failure
const (
	askedBytes  = 8
	answerBytes = 12
)

// An ExchangeRequest is one request of an exchange. The guest chooses its id.
type ExchangeRequest struct {
	ID    uint32
	Frame []byte
}

// An ExchangeResponse is the answer to one request.
type ExchangeResponse struct {
	ID    uint32
	Errno Errno
	Reply []byte
}

var errExchange = errors.New("malformed exchange")

// AppendLeast begins the request of an exchange, which waits for least answers.
func AppendLeast(b []byte, least uint32) []byte { return binary.LittleEndian.AppendUint32(b, least) }

// Append appends the encoded form to b.
func (a ExchangeRequest) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, a.ID)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Frame)))
	return append(b, a.Frame...)
}

// Bytes returns the length of the encoded form.
func (a ExchangeRequest) Bytes() int { return askedBytes + len(a.Frame) }

// ParseExchange decodes the request of an exchange. The frames share memory with b.
func ParseExchange(b []byte) (least uint32, asked []ExchangeRequest, err error) {
	if len(b) < 4 {
		return 0, nil, errExchange
	}
	least, b = binary.LittleEndian.Uint32(b), b[4:]
	for len(b) > 0 {
		if len(b) < askedBytes {
			return 0, nil, errExchange
		}
		id, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if b = b[askedBytes:]; uint64(n) > uint64(len(b)) || len(asked) == MaxHandles {
			return 0, nil, errExchange
		}
		asked, b = append(asked, ExchangeRequest{id, b[:n:n]}), b[n:]
	}
	return least, asked, nil
}

// Append appends the encoded form to b.
func (a ExchangeResponse) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, a.ID)
	b = binary.LittleEndian.AppendUint32(b, uint32(a.Errno))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Reply)))
	return append(b, a.Reply...)
}

// Bytes returns the length of the encoded form.
func (a ExchangeResponse) Bytes() int { return answerBytes + len(a.Reply) }

// NextAnswer decodes the first answer of a reply, which shares memory with b, and returns
// the bytes after it.
func NextAnswer(b []byte) (a ExchangeResponse, rest []byte, err error) {
	if len(b) < answerBytes {
		return ExchangeResponse{}, nil, errExchange
	}
	errno, n := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	a = ExchangeResponse{ID: binary.LittleEndian.Uint32(b), Errno: Errno(errno)}
	if b = b[answerBytes:]; errno > 0xffff || uint64(n) > uint64(len(b)) {
		return ExchangeResponse{}, nil, errExchange
	}
	a.Reply = b[:n:n]
	return a, b[n:], nil
}
