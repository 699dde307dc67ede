//go:build unix

package cluster

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A slow server takes connections, and says nothing on the first until it is let.
type slow struct {
	*httptest.Server
	reached, on chan struct{}

	mu   sync.Mutex // guards seen
	seen map[string]int
}

func newSlow(t *testing.T) *slow {
	s := &slow{reached: make(chan struct{}), on: make(chan struct{}), seen: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[r.Header.Get("Webhook-Id")]++
	}))
	var first sync.Once
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		wait := false
		first.Do(func() { wait = true })
		if wait {
			close(s.reached)
			<-s.on
		}
		return nil, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// got is how many messages came, and how many of them again.
func (s *slow) got() (n, again int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.seen {
		n++
		again += times - 1
	}
	return n, again
}

// A host is stopped while it is about to send an event and a batch, until another one has sent them: it
// goes on, and sends neither.
func TestStoppedSender(t *testing.T) {
	t.Parallel()
	hook, batches := newSlow(t), newSlow(t)
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, postgres.Shared(t))
	c.lease, c.flags = 3*time.Second, []string{"--webhook-loopback"}
	c.env = map[string]string{"a": "SSL_CERT_FILE=" + trusted, "b": "SSL_CERT_FILE=" + trusted}
	c.add("a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	a.do("POST", "/v1/webhooks", map[string]any{"url": hook.URL, "events": []string{"run.completed"}}, nil)
	a.do("POST", "/v1/destinations",
		host.NewDestination{Name: "out", URL: "webhook:" + batches.URL + "/#a-secret-of-some-length-0123456789"}, nil)
	a.connect("some", step{"do": "emit", "n": 3})
	b.wait(b.begin("some"), served.Over)
	for _, s := range []*slow{hook, batches} {
		select {
		case <-s.reached:
		case <-soon(t).Done():
			t.Fatal("nothing is sent")
		}
	}
	a.signal(syscall.SIGSTOP)
	until(t, "the other host has sent both", func() bool {
		n, _ := hook.got()
		k, _ := batches.got()
		return n == 1 && k == 1
	})
	close(hook.on)
	close(batches.on)
	a.signal(syscall.SIGCONT)
	<-a.over
	hook.Close() // which waits for what is under way
	batches.Close()
	if _, again := hook.got(); again > 0 {
		t.Error("a host that was removed sent an event again")
	}
	if _, again := batches.got(); again > 0 {
		t.Error("a host that was removed sent a batch again")
	}
}
