package guesthttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// A reply is what the request function returns, as far as it matters here.
type reply struct {
	Handle  json.RawMessage `json:"handle"`
	Status  int             `json:"status"`
	Headers [][]string      `json:"headers"`
	Bytes   *int64          `json:"bytes"`
}

// response makes a response of a reply. Of one that makes no sense it closes
// the handle, if there is one.
func (t *Transport) response(req *http.Request, raw []byte) (*http.Response, error) {
	var r reply
	err := json.Unmarshal(raw, &r)
	handle, named := r.handle()
	var header http.Header
	if err == nil {
		header, err = r.check()
	}
	if err != nil {
		if named {
			_ = t.host.CloseHandle(handle) // the reply is the fault to tell
		}
		return nil, fmt.Errorf("guesthttp: malformed reply of the host: %w", err)
	}
	res := &http.Response{
		Status:     strings.TrimSpace(strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)),
		StatusCode: r.Status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		ContentLength: r.length(),
		Body:          http.NoBody,
		Request:       req,
	}
	if req.Method == http.MethodHead || res.ContentLength == 0 {
		_ = t.host.CloseHandle(handle) // there is nothing left to lose
		return res, nil
	}
	res.Body = newBody(req.Context(), t.host, handle, res.ContentLength)
	return res, nil
}

// handle is the body's, known even if the rest of the reply is beyond reading.
func (r *reply) handle() (int32, bool) {
	n, err := strconv.ParseInt(string(r.Handle), 10, 32)
	return int32(n), err == nil && n >= 0
}

// check looks for what no host sends.
func (r *reply) check() (http.Header, error) {
	_, named := r.handle()
	switch {
	case !named:
		return nil, errors.New("it names no handle")
	case r.Status < 200 || r.Status > 999:
		return nil, fmt.Errorf("status %d", r.Status)
	case r.Bytes != nil && *r.Bytes < 0:
		return nil, fmt.Errorf("%d bytes", *r.Bytes)
	}
	return headerOf(r.Headers)
}

// length is ContentLength: of HEAD what a GET would have.
func (r *reply) length() int64 {
	switch {
	case r.Status == http.StatusNoContent || r.Status == http.StatusNotModified:
		return 0
	case r.Bytes != nil:
		return *r.Bytes
	}
	return -1
}
