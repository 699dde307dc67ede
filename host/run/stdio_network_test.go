package run

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// server is a binding with one body, which it gives out in pieces of some size. It
// fails a read at broken.
type server struct {
	t      *testing.T
	body   string
	at     int
	piece  int
	broken int // position, -1 for none
	open   map[uint32]bool
	next   uint32
}

func (s *server) handle(_ context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	switch call {
	case abi.CallNetworkRequest:
		if strings.Contains(string(payload), "denied") {
			return []byte(`{"code":"host_not_granted","message":"no","detail":{"step":"host"}}`), abi.EDENIED
		}
		s.next++
		s.open[s.next], s.at = true, 0
		return []byte(`{"handle":` + string('0'+rune(s.next)) +
			`,"status":200,"headers":[["a","b\"c"]],"url":"https://example.org/","redirects":0}`), abi.OK
	case abi.CallRead:
		handle, most, err := abi.ParseRead(payload)
		if err != nil || !s.open[handle] {
			s.t.Errorf("read of %d: %v", handle, err)
		}
		if s.at == s.broken {
			return []byte(`{"code":"timeout","message":"slow"}`), abi.ETIMEOUT
		}
		n := min(int(most), s.piece, len(s.body)-s.at)
		if s.broken > s.at {
			n = min(n, s.broken-s.at)
		}
		s.at += n
		return []byte(s.body[s.at-n : s.at]), abi.OK
	case abi.CallClose:
		handle := binary.LittleEndian.Uint32(payload)
		if !s.open[handle] {
			s.t.Errorf("%d is closed twice", handle)
		}
		delete(s.open, handle)
		return nil, abi.OK
	}
	s.t.Errorf("call %d", call)
	return nil, abi.ENOTSUP
}

type responseLine struct {
	Status int
	Body   string
	Base64 string `json:"body_base64"`
	More   bool
}

func (l responseLine) bytes(t *testing.T) string {
	t.Helper()
	p, err := base64.StdEncoding.DecodeString(l.Base64)
	if err != nil || len(p) > 0 && l.Body != "" {
		t.Fatalf("%v, %d and %d bytes", err, len(p), len(l.Body))
	}
	return l.Body + string(p)
}

func parsed(t *testing.T, members []byte) (l responseLine) {
	t.Helper()
	if err := json.Unmarshal([]byte(`{"type":"RESPONSE"`+string(members)+`}`), &l); err != nil {
		t.Fatalf("%v: %.200s", err, members)
	}
	return l
}

// Whatever the body and its pieces are, the lines put together are the body, texts
// stay texts, and no line is long.
func TestBodyByLines(t *testing.T) {
	for name, body := range map[string]string{
		"empty": "", "short": "hello", "text": strings.Repeat("größe €😀\n", 40_000),
		"bytes": strings.Repeat("\xff\x00a", 100_000), "cut character at the end": strings.Repeat("a", pieceBytes) +
			"\xe2\x82", "a piece exactly": strings.Repeat("x", pieceBytes),
		"text, then bytes": strings.Repeat("ä", pieceBytes) + "\xff",
	} {
		for _, piece := range []int{1 << 20, 4097, 7} {
			s := &server{t: t, body: body, piece: piece, broken: -1, open: map[uint32]bool{}}
			x := &exchange{}
			line, errno := x.make(t.Context(), s.handle, nil)
			l := parsed(t, line)
			if errno != abi.OK || l.Status != 200 {
				t.Fatalf("%s: %v %+v", name, errno, l)
			}
			got := l.bytes(t)
			for l.More {
				if line, errno = x.more(t.Context(), s.handle, nil); errno != abi.OK || len(line) > 6*pieceBytes+200 {
					t.Fatalf("%s: %v, %d bytes", name, errno, len(line))
				}
				l = parsed(t, line)
				if strings.HasPrefix(name, "text") && l.Base64 != "" && !strings.Contains(l.bytes(t), "\xff") {
					t.Errorf("%s: text is packed", name)
				}
				got += l.bytes(t)
			}
			if got != body || len(s.open) > 0 {
				t.Errorf("%s by %d: %d bytes of %d, open %v", name, piece, len(got), len(body), s.open)
			}
			if text, errno := x.more(t.Context(), s.handle, nil); errno != abi.ENOENT {
				t.Errorf("%s: read on: %v %s", name, errno, text)
			}
		}
	}
}

// A body that breaks off gives what there was, and then its error; the next request
// closes it.
func TestBrokenBodyByLines(t *testing.T) {
	for _, at := range []int{0, 5, pieceBytes} {
		s := &server{t: t, body: strings.Repeat("y", 2*pieceBytes), piece: 1 << 20, broken: at, open: map[uint32]bool{}}
		x := &exchange{}
		line, errno := x.make(t.Context(), s.handle, nil)
		if l := parsed(t, line); errno != abi.OK || l.Status != 200 || len(l.Body) != at || !l.More {
			t.Errorf("at %d: %v %d bytes, more %v", at, errno, len(l.Body), l.More)
		}
		if text, errno := x.more(t.Context(), s.handle, nil); errno != abi.ETIMEOUT ||
			!strings.Contains(string(text), "slow") {
			t.Errorf("at %d: %v %s", at, errno, text)
		}
		if _, errno := x.make(t.Context(), s.handle, []byte("denied")); errno != abi.EDENIED || len(s.open) > 0 {
			t.Errorf("the next request: %v, open %v", errno, s.open)
		}
	}
}
