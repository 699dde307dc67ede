//go:build !wasip1

package guest_test

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A teller is a host with one answer; behind its handle is the text rest.
type teller struct {
	crowd
	reply, rest, asked string
	reads, closes      int
}

func (h *teller) Call(call abi.Call, request []byte) ([]byte, error) {
	if call != abi.CallNetworkExchange {
		return h.crowd.Call(call, request)
	}
	_, asked, err := abi.ParseExchange(request)
	if err != nil {
		return nil, err
	}
	frame := asked[0].Frame
	h.asked = string(frame[4 : 4+binary.LittleEndian.Uint32(frame)])
	return abi.ExchangeResponse{ID: asked[0].ID, Reply: []byte(h.reply)}.Append(nil), nil
}

func (h *teller) Read(_ int32, dst []byte) (int, error) {
	h.reads++
	n := copy(dst, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

func (h *teller) Close(int32) error { h.closes++; return nil }

// TestFetch: the body comes with the answer, behind it, or in both, and its handle is closed once.
func TestFetch(t *testing.T) {
	framed := func(head, body string) string {
		return string(binary.LittleEndian.AppendUint32(nil, uint32(len(head)))) + head + body
	}
	const some, none = `{"handle":7,"status":200,"headers":[],"url":"https://h.example/"}`,
		`{"handle":0,"status":200,"headers":[],"url":"https://h.example/"}`
	for name, c := range map[string]struct {
		host  *teller
		body  string // "" where the reply is malformed
		taken bool
	}{
		"whole":         {&teller{reply: framed(none, "all of it")}, "all of it", false},
		"behind it":     {&teller{reply: framed(some, ""), rest: "the rest"}, "the rest", true},
		"both":          {&teller{reply: framed(some, "begun, "), rest: "the rest"}, "begun, the rest", false},
		"an older host": {&teller{reply: some, rest: "the rest"}, "the rest", true},
		"no JSON":       {&teller{reply: framed("{", "")}, "", false},
		"too short":     {&teller{reply: "\x02\x00"}, "", false},
		"nothing":       {&teller{}, "", false},
	} {
		for _, take := range []bool{false, true} {
			before := *c.host
			collect := func(_ context.Context, run *guest.Run) error {
				res, err := run.Fetch(guest.Request{URL: "https://h.example/"})
				if err != nil || c.body == "" {
					if err == nil || c.body != "" {
						t.Errorf("%s: %v", name, err)
					}
					return nil
				}
				if take {
					if _, ok := res.Body.(interface{ TakeHandle() (int32, bool) }).TakeHandle(); ok != c.taken {
						t.Errorf("%s: taken %v", name, ok)
					} else if ok {
						return nil
					}
				}
				body, err := io.ReadAll(res.Body)
				if string(body) != c.body || err != nil {
					t.Errorf("%s: %q, %v", name, body, err)
				}
				return res.Body.Close()
			}
			guest.Drive(t.Context(), guest.Connector{Collect: collect}, c.host)
			want := 0
			if strings.Contains(c.host.reply, `"handle":7`) && !(take && c.taken) {
				want = 1
			}
			if c.host.closes != want {
				t.Errorf("%s: closed %d times, want %d", name, c.host.closes, want)
			}
			if want := `{"method":"GET","url":"https://h.example/","headers":[],"inline_bytes":65536}`; c.host.asked != want {
				t.Errorf("%s: asked %s", name, c.host.asked)
			}
			*c.host = before
		}
	}
}

// TestSmallReads: who reads a long body in small pieces does not call the host for each of them.
func TestSmallReads(t *testing.T) {
	host := &teller{reply: `{"handle":7,"status":200,"headers":[],"url":"http://h/"}`, rest: strings.Repeat("text", 50_000)}
	guest.Drive(t.Context(), guest.Connector{Collect: func(_ context.Context, run *guest.Run) error {
		res, err := run.Fetch(guest.Request{URL: "http://h/"})
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(iotest.OneByteReader(res.Body))
		if len(body) != 200_000 || err != nil {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		return nil
	}}, host)
	if host.reads > 6 {
		t.Errorf("%d calls for 200,000 bytes", host.reads)
	}
}

// TestRequests: times are rounded up, and what JSON would alter is refused before it is sent.
func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		request guest.Request
		asked   string // "" where it is refused
	}{
		"times": {guest.Request{URL: "http://h/", Timeout: time.Microsecond, Wait: 2*time.Millisecond + 1},
			`{"method":"GET","url":"http://h/","headers":[],"timeout_ms":1,"wait_ms":3,"inline_bytes":65536}`},
		"URL":         {guest.Request{URL: "http://h/\xff"}, ""},
		"header":      {guest.Request{URL: "http://h/", Header: [][2]string{{"X-Name", "caf\xe9"}}}, ""},
		"name of one": {guest.Request{URL: "http://h/", Header: [][2]string{{"X-\xe9", "a"}}}, ""},
		"other script": {guest.Request{URL: "http://h/ü", Method: "PUT"},
			`{"method":"PUT","url":"http://h/ü","headers":[],"inline_bytes":65536}`},
	} {
		host := &teller{reply: `{"handle":0,"status":200,"headers":[],"url":"http://h/"}`}
		guest.Drive(t.Context(), guest.Connector{Collect: func(_ context.Context, run *guest.Run) error {
			if _, err := run.Fetch(c.request); (err != nil) != (c.asked == "") {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		}}, host)
		if host.asked != c.asked {
			t.Errorf("%s: asked %s, want %s", name, host.asked, c.asked)
		}
	}
}
