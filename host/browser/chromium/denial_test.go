package chromium_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// Merged per host, port and verdict every five seconds.
func TestMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &gateFixture{}
		m := chromium.NewMerge(h.note)
		for range 1000 {
			m.Add("b.example", 443, "host_denied")
		}
		m.Add("a.example", 443, "host_denied")
		m.Add("b.example", 80, "host_denied")
		time.Sleep(4999 * time.Millisecond)
		synctest.Wait()
		if told := h.all(); len(told) != 0 {
			t.Errorf("too early: %+v", told)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		m.Add("b.example", 443, "host_denied")
		m.Close()
		m.Add("c.example", 443, "host_denied")
		time.Sleep(time.Minute)
		want := []chromium.Denial{{"a.example", 443, "host_denied", 1}, {"b.example", 80, "host_denied", 1},
			{"b.example", 443, "host_denied", 1000}, {"b.example", 443, "host_denied", 1}}
		if diff := cmp.Diff(want, h.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// 200 lines in a run, however many hosts a page makes up.
func TestMostLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &gateFixture{}
		m := chromium.NewMerge(h.note)
		for round := range 10 {
			for i := range 1000 {
				m.Add(fmt.Sprintf("%d-%d.example", round%2, i%50), 443, "host_denied")
				m.Add(fmt.Sprintf("r%d-%d.example", round, i), 443, "host_denied")
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
		}
		m.Close()
		if v, old := m.Last("r9-999.example", 443), m.Last("r0-0.example", 443); v != "host_denied" || old != "" {
			t.Errorf("the newest is %q, the oldest %q", v, old)
		}
		if lines := len(h.all()); lines != 200 {
			t.Errorf("%d lines", lines)
		}
	})
}

// A browser that asks without pause while runs come and go finds either its run's
// policy or none, and everything ends with the gate.
func TestHammer(t *testing.T) {
	port := serveSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	policy := policyOf(entry(t, "http://127.0.0.1:"+port, true))
	g := gate(t, chromium.GateOptions{})
	at := strings.TrimPrefix(g.ProxyURL(), "http://")
	requests := []string{
		"GET http://127.0.0.1:" + port + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"CONNECT 127.0.0.1:" + port + " HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: 127.0.0.1:" + port +
			"\r\nUpgrade: websocket\r\n\r\n",
		"CONNECT evil.example:443 HTTP/1.1\r\n\r\n",
	}
	var asking, binding sync.WaitGroup
	stop := make(chan struct{})
	for i := range 8 {
		asking.Go(func() {
			for n := range 60 {
				conn, err := net.Dial("tcp", at)
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
				fmt.Fprint(conn, requests[(i+n)%len(requests)])
				if strings.HasPrefix(requests[(i+n)%len(requests)], "CONNECT 127") {
					_ = conn.(*net.TCPConn).CloseWrite()
				}
				answer, err := io.ReadAll(conn)
				if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
					t.Errorf("a connection hangs after %q", answer)
				}
				if strings.Contains(requests[(i+n)%len(requests)], "evil") && !strings.HasPrefix(string(answer), "HTTP/1.1 403 ") {
					t.Errorf("%q", answer)
				}
				_ = conn.Close()
			}
		})
	}
	binding.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				g.Bind(chromium.GateBinding{Policy: policy, Denied: g.note})
				g.Counts()
				g.Verdict("evil.example", 443)
				g.Unbind()
			}
		}
	})
	asking.Wait()
	close(stop)
	binding.Wait()
	if c := g.Counts(); c.Denied < 8*60/2 {
		t.Errorf("%+v", c)
	}
}
