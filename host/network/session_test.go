package network_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// A session answers as the contract says, and its handles end with it.
func TestSession(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "7"})
		if r.URL.Path == "/hang" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 100))
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	ask := func(path string) (reply struct {
		Handle  uint32      `json:"handle"`
		Status  int         `json:"status"`
		Headers [][2]string `json:"headers"`
		Bytes   int         `json:"bytes"`
	}) {
		t.Helper()
		text, errno := s.Handle(t.Context(), abi.CallNetworkRequest, frame(`{"method":"GET","url":"`+base+path+`"}`, ""))
		if err := json.Unmarshal(text, &reply); err != nil || errno != abi.OK {
			t.Fatalf("%d %s: %v", errno, text, err)
		}
		return reply
	}
	read := func(ctx context.Context, handle uint32) (string, abi.Errno) {
		b, errno := s.Handle(ctx, abi.CallRead, abi.AppendRead(nil, handle, 600))
		return string(b), errno
	}
	r := ask("/")
	for _, h := range r.Headers {
		if h[0] == "Set-Cookie" {
			t.Error("the guest sees a cookie")
		}
	}
	var all string
	for {
		b, errno := read(t.Context(), r.Handle)
		if errno != abi.OK {
			t.Fatal(errno, b)
		}
		if b == "" {
			break
		}
		all += b
	}
	if r.Status != 200 || r.Bytes != 1000 || len(all) != 1000 {
		t.Errorf("%+v, %d bytes read", r, len(all))
	}
	handle := binary.LittleEndian.AppendUint32(nil, r.Handle)
	if _, errno := s.Handle(t.Context(), abi.CallClose, handle); errno != abi.OK {
		t.Error(errno)
	}
	if _, errno := s.Handle(t.Context(), abi.CallClose, handle); errno != abi.ENOENT {
		t.Error("closed twice:", errno)
	}
	if _, errno := read(t.Context(), 4_000_000_000); errno != abi.ENOENT {
		t.Error(errno)
	}

	text, _ := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(`{"method":"GET","url":"https://nowhere.example/"}`, ""))
	if got := string(text); !strings.Contains(got, `"detail":{"step":"host"}`) ||
		!strings.Contains(got, "--allow-host nowhere.example") {
		t.Error(got)
	}

	hanging := ask("/hang")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if text, errno := read(ctx, hanging.Handle); errno != abi.ECANCELED {
		t.Errorf("a read that is cancelled: %d %s", errno, text)
	}
	for range abi.MaxHandles - 1 {
		ask("/")
	}
	text, errno := s.Handle(t.Context(), abi.CallNetworkRequest, frame(`{"method":"GET","url":"`+base+`"}`, ""))
	if errno != abi.ETOOBIG || !strings.Contains(string(text), "too_many_handles") {
		t.Errorf("%d %s", errno, text)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(`{"method":"GET","url":"`+base+`"}`, "")); errno != abi.ECANCELED {
		t.Error("a request after the end:", errno)
	}
}
