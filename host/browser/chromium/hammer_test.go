package chromium_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

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
		"CONNECT 127.0.0.1:" + port + " HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nUpgrade: websocket\r\n\r\n",
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
