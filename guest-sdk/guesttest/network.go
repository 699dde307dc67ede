//go:build !wasip1

package guesttest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A networkRequest is the JSON head of a request frame.
type networkRequest struct {
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
}

// A networkReply is the reply of the request function.
type networkReply struct {
	Handle    int32       `json:"handle"`
	Status    int         `json:"status"`
	Headers   [][2]string `json:"headers"`
	URL       string      `json:"url"`
	Redirects int         `json:"redirects"`
	Bytes     *int64      `json:"bytes,omitempty"`
}

// exchange serves the exchange call. All answers are ready at once.
func (h *host) exchange(request []byte) ([]byte, error) {
	_, asked, err := abi.ParseExchange(request)
	if err != nil {
		return nil, guest.NewError(abi.EINVAL, "malformed", err.Error())
	}
	var answers []byte
	for _, q := range asked {
		a := abi.ExchangeResponse{ID: q.ID}
		var e *guest.Error
		if a.Reply, err = h.network(q.Frame); errors.As(err, &e) {
			text, _ := json.Marshal(map[string]string{"code": e.Code, "message": e.Message}) // two strings
			a.Errno, a.Reply = e.Errno, text
		} else if err != nil {
			return nil, err
		}
		answers = a.Append(answers)
	}
	return answers, nil
}

// network serves one request: Options.Network gets it if the manifest lists its host.
// Redirects are not followed.
func (h *host) network(frame []byte) ([]byte, error) {
	if v := h.protocol.Step(abi.StepSide); v != nil {
		return nil, h.violate(v)
	}
	var q networkRequest
	if len(frame) < 4 || uint64(binary.LittleEndian.Uint32(frame)) > uint64(len(frame)-4) {
		return nil, guest.NewError(abi.EINVAL, "malformed", "the frame is shorter than its head")
	}
	head := frame[4 : 4+binary.LittleEndian.Uint32(frame)]
	body := frame[4+len(head):]
	if err := json.Unmarshal(head, &q); err != nil {
		return nil, guest.NewError(abi.EINVAL, "malformed", err.Error())
	}
	u, err := url.Parse(q.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, guest.NewError(abi.EINVAL, "malformed", "the URL is not an http or https one")
	}
	if h.options.Network == nil || !h.listed(u) {
		h.line("%s", joined("NETWORK", q.Method, q.URL, "-> EDENIED"))
		return nil, guest.NewError(abi.EDENIED, "host_not_approved", u.Host+" is not among the hosts of the manifest")
	}
	req := httptest.NewRequestWithContext(h.t.Context(), q.Method, q.URL, bytes.NewReader(slices.Clone(body)))
	for _, header := range q.Headers {
		req.Header.Add(header[0], header[1])
	}
	w := httptest.NewRecorder()
	h.options.Network.ServeHTTP(w, req)
	h.line("%s", joined("NETWORK", q.Method, q.URL, "->", http.StatusText(w.Code)))
	handle, err := h.handles.open(w.Body)
	if err != nil {
		return nil, err
	}
	reply := networkReply{Handle: handle, Status: w.Code, Headers: [][2]string{}, URL: q.URL}
	result := w.Result()
	if result.ContentLength >= 0 { // the handler set it
		reply.Bytes = &result.ContentLength
	}
	for name, values := range result.Header {
		for _, v := range values {
			reply.Headers = append(reply.Headers, [2]string{name, v})
		}
	}
	slices.SortFunc(reply.Headers, func(a, b [2]string) int { return bytes.Compare([]byte(a[0]), []byte(b[0])) })
	return json.Marshal(reply)
}

// listed reports whether the manifest lists the host of a URL, as host or host:port.
func (h *host) listed(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	for _, pattern := range h.hosts {
		if pattern == u.Hostname() || pattern == net.JoinHostPort(u.Hostname(), port) {
			return true
		}
	}
	return false
}

// browser serves the call function of the browser binding.
func (h *host) browser(request []byte) ([]byte, error) {
	if v := h.protocol.Step(abi.StepSide); v != nil {
		return nil, h.violate(v)
	}
	if p := h.options.Pages; p != nil {
		p.handles = &h.handles
		return p.Call(request)
	}
	if h.options.Browser == nil {
		return nil, guest.NewError(abi.EDENIED, "browser_not_approved", "the test offers no browser")
	}
	return h.options.Browser(request)
}

// handles are the open stream handles of the guest.
type handles struct {
	readers map[int32]io.Reader
	last    int32
}

func (h *handles) open(r io.Reader) (int32, error) {
	if len(h.readers) >= abi.MaxHandles {
		return 0, guest.NewError(abi.ETOOBIG, "too_many_handles", "64 handles are open: close some")
	}
	if h.readers == nil {
		h.readers = map[int32]io.Reader{}
	}
	h.last++
	h.readers[h.last] = r
	return h.last, nil
}

// Read implements guest.Host.
func (h *host) Read(handle int32, dst []byte) (int, error) {
	if err := h.refused(abi.CallRead); err != nil {
		return 0, err
	}
	r, ok := h.handles.readers[handle]
	if !ok {
		return 0, guest.NewError(abi.ENOENT, "no_such_handle", "")
	}
	n, err := r.Read(dst)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, guest.NewError(abi.EIO, "read", err.Error())
	}
	return n, nil
}

// Close implements guest.Host.
func (h *host) Close(handle int32) error {
	if _, ok := h.handles.readers[handle]; !ok {
		return guest.NewError(abi.ENOENT, "no_such_handle", "")
	}
	delete(h.handles.readers, handle)
	return nil
}
