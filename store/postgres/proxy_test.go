//go:build unix

package postgres_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	server "github.com/sluicehost/sluice/tests/postgres"
)

// A proxy stands between a store and its server.
type proxy struct {
	dir  string
	open sync.WaitGroup

	mu     sync.Mutex // guards all below
	server *server.Server
	// cut ends the connection that sends the next COMMIT: before the server has it, or
	// after it has answered.
	cut   string
	cuts  int
	forge bool // the number of the server's process, as a pooler does
	// frozen holds up what the store sends until it is closed; nil while it passes.
	frozen chan struct{}
}

const before, after = "before", "after"

// newProxy listens in a directory of its own until the test ends.
func newProxy(t *testing.T, s *server.Server) *proxy {
	t.Helper()
	p := &proxy{server: s, dir: t.TempDir()}
	l, err := net.Listen("unix", filepath.Join(p.dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	p.open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.open.Go(func() { p.serve(t, c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.open.Wait()
	})
	return p
}

// through is the URL of a database by way of the proxy.
func (p *proxy) through(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", p.dir)
	u.RawQuery = q.Encode()
	return u.String()
}

// redirect leads new connections to another server.
func (p *proxy) redirect(s *server.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = s
}

func (p *proxy) serve(t *testing.T, client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	s := p.server
	p.mu.Unlock()
	up, err := s.Dial(t.Context())
	if err != nil {
		return
	}
	defer up.Close()
	var swallow sync.Mutex // held once the answer of the server is not to arrive
	p.open.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := up.Read(buf)
			if err != nil {
				return
			}
			if !swallow.TryLock() {
				return // it has answered
			}
			p.mu.Lock()
			forge := p.forge
			p.mu.Unlock()
			if i := bytes.Index(buf[:n], []byte{'K', 0, 0, 0, 12}); forge && i >= 0 {
				buf[i+8]++
			}
			_, err = client.Write(buf[:n])
			swallow.Unlock()
			if err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.pass()
		switch p.cutting(buf[:n]) {
		case before:
			return
		case after:
			swallow.Lock()
			_, _ = up.Write(buf[:n])
			// The server has done it when it has answered; the other goroutine ends then.
			one := make([]byte, 1)
			_, _ = io.ReadFull(client, one)
			return
		}
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) cutting(message []byte) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut == "" || !bytes.Contains(message, []byte("commit\x00")) {
		return ""
	}
	how := p.cut
	p.cut = ""
	p.cuts++
	return how
}

// freeze holds up everything until thaw is called, as when the host is stopped or far away.
func (p *proxy) freeze() (thaw func()) {
	frozen := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.frozen = nil
		close(frozen)
	})
}

func (p *proxy) pass() {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

func (p *proxy) cutNext(how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = how
}

func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}
