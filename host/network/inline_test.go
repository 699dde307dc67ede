package network_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// TestInline: a short body comes with its answer when that is asked for, and
// what does not fit stays under a handle, whole and in order; a body whose end
// nobody knows is not waited for.
func TestInline(t *testing.T) {
	packed := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.Bytes()
	}
	bomb := strings.Repeat("0", 1<<20)
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/short":
			fmt.Fprint(w, "short")
		case "/long":
			fmt.Fprint(w, strings.Repeat("long", 1000))
		case "/packed", "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			body := packed("packed")
			if r.URL.Path == "/bomb" {
				body = packed(bomb)
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
		case "/late":
			w.Header().Set("Content-Encoding", "gzip")
			body := append([]byte("0123456789"), packed("a lie")...)
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
		case "/cut":
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/stream":
			fmt.Fprint(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/empty":
			w.Header().Set("Content-Length", "0")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		}
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	defer s.Close()
	ask := func(path, more string) (handle uint32, inline string) {
		t.Helper()
		reply, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
			frame(`{"method":"GET","url":"`+base+path+`"`+more+`}`, ""))
		if errno != abi.OK {
			t.Fatalf("%s: %s", path, reply)
		}
		if more != "" {
			n := binary.LittleEndian.Uint32(reply)
			reply, inline = reply[4:4+n], string(reply[4+n:])
		}
		var head struct{ Handle uint32 }
		if err := json.Unmarshal(reply, &head); err != nil {
			t.Fatal(err)
		}
		return head.Handle, inline
	}
	rest := func(handle uint32) (text string, errno abi.Errno) {
		for {
			b, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, handle, 1<<20))
			if text += string(b); errno != abi.OK || len(b) == 0 {
				return text, errno
			}
		}
	}
	for path, want := range map[string]string{"/short": "short", "/packed": "packed", "/none": ""} {
		if handle, got := ask(path, `,"inline_bytes":1000`); handle != 0 || got != want {
			t.Errorf("%s: handle %d, %q", path, handle, got)
		}
	}
	for _, path := range []string{"/short", "/none", "/empty"} { // the reply is JSON alone, also when there is no body
		if handle, got := ask(path, ""); handle == 0 || got != "" {
			t.Errorf("%s, not asked for: handle %d, %q", path, handle, got)
		}
	}
	handle, got := ask("/long", `,"inline_bytes":1000`)
	if text, errno := rest(handle); handle == 0 || got != "" || text != strings.Repeat("long", 1000) || errno != abi.OK {
		t.Errorf("over the length: handle %d, %q, then %d bytes, %v", handle, got, len(text), errno)
	}
	handle, got = ask("/bomb", `,"inline_bytes":10000`)
	if text, _ := rest(handle); handle == 0 || len(got) > 1<<18 || got+text != bomb {
		t.Errorf("unpacks to more: handle %d, %d and %d bytes", handle, len(got), len(text))
	}
	handle, got = ask("/cut", `,"inline_bytes":1000`)
	if text, errno := rest(handle); !strings.HasPrefix(got+text, "half") || errno != abi.EUNAVAIL {
		t.Errorf("cut: handle %d, %q, then %q, %v", handle, got, text, errno)
	}
	handle, got = ask("/late", `,"inline_bytes":1000`) // what went wrong once does not go on
	if text, errno := rest(handle); strings.Contains(got+text, "lie") || errno != abi.EUNAVAIL {
		t.Errorf("late: handle %d, %q, then %q, %v", handle, got, text, errno)
	}
	if handle, got = ask("/stream", `,"inline_bytes":1000`); handle == 0 || got != "" { // it never ends
		t.Errorf("stream: handle %d, %q", handle, got)
	}
}
