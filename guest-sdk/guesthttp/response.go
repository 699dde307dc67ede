package guesthttp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A reply holds the used members of the request function's reply.
type reply struct {
	handle int32 // of the body or its rest; 0 if the body is complete, -1 if the reply names none
	status int
	header http.Header
	bytes  int64  // length of the body; -1 if unknown
	inline []byte // beginning of the body
}

// readReply reads a reply: u32 n, n bytes of JSON, the beginning of the body; or only the
// JSON, from a host that sends no inline bodies. With an error the handle is still set if
// it is known.
func readReply(raw []byte) (reply, error) {
	r := reply{handle: -1, bytes: -1}
	framed := len(raw) >= 4 && uint64(binary.LittleEndian.Uint32(raw)) <= uint64(len(raw)-4)
	if framed {
		n := 4 + binary.LittleEndian.Uint32(raw)
		raw, r.inline = raw[4:n], raw[n:]
	}
	if quick, ok := quickReply(raw); ok && (framed || quick.handle > 0) {
		quick.inline = r.inline
		return quick, nil
	}
	err := r.strict(raw, framed)
	return r, err
}

// strict reads JSON in any spelling. Only a framed reply may have handle 0.
func (r *reply) strict(raw []byte, framed bool) error {
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return err
	}
	number := func(name string, least, most int64) (int64, error) {
		m, _ := v.Member(name)
		n, ok := m.SafeInteger()
		if !ok || n < least || n > most {
			return 0, fmt.Errorf("%s is %.40s", name, m.Raw)
		}
		return n, nil
	}
	handle, err := number("handle", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	r.handle = int32(handle)
	if handle == 0 && !framed {
		return errors.New("it names no handle")
	}
	status, err := number("status", 200, 999)
	if err != nil {
		return err
	}
	r.status = int(status)
	if m, _ := v.Member("bytes"); !m.Absent() {
		if r.bytes, err = number("bytes", 0, math.MaxInt64); err != nil {
			return err
		}
	}
	list, _ := v.Member("headers")
	if !list.Is(strictjson.KindArray) {
		return errors.New("its headers are no list")
	}
	r.header, err = headerOf(list)
	return err
}

// response converts a reply to a response. If the reply is invalid it closes the handle, if
// any.
func (t *Transport) response(req *http.Request, raw []byte) (*http.Response, error) {
	r, err := readReply(raw)
	if err != nil {
		if r.handle > 0 {
			_ = t.host.CloseHandle(r.handle) // the caller gets err
		}
		return nil, fmt.Errorf("guesthttp: malformed reply of the host: %w", err)
	}
	res := &http.Response{
		Status:     strings.TrimSpace(strconv.Itoa(r.status) + " " + http.StatusText(r.status)),
		StatusCode: r.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        r.header,
		ContentLength: r.length(),
		Body:          http.NoBody,
		Request:       req,
	}
	switch {
	case req.Method == http.MethodHead || res.ContentLength == 0:
		if r.handle > 0 {
			_ = t.host.CloseHandle(r.handle) // there is nothing left to lose
		}
	case r.handle == 0:
		res.Body = &whole{ctx: req.Context(), left: *bytes.NewReader(r.inline)}
	default:
		res.Body = newBody(req.Context(), t.host, r.handle, res.ContentLength, r.inline)
	}
	return res, nil
}

// length returns the ContentLength, which for HEAD is that of a GET.
func (r *reply) length() int64 {
	if r.status == http.StatusNoContent || r.status == http.StatusNotModified {
		return 0
	}
	return r.bytes
}

// A whole is a body that was completely inline.
type whole struct {
	ctx    context.Context // of the request, as in net/http
	left   bytes.Reader
	closed bool
}

func (b *whole) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.left.Read(p)
}

func (b *whole) Close() error {
	b.closed = true
	return nil
}
