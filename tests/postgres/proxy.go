//go:build unix

package postgres

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/store/postgres/server"
)

// A Proxy stands between a host and its server, as the network does.
type Proxy struct {
	dir  string
	open sync.WaitGroup

	mu     sync.Mutex // guards all below
	server *Server
	conns  map[net.Conn]bool
	cut    Cut
	cuts   int
	forge  bool
	mute   bool
	frozen chan struct{} // nil while everything passes
	closed bool
}

// A Cut is where a connection ends around a COMMIT.
type Cut string

// The cuts: before the server has the COMMIT, and after it has answered, which nobody hears.
const (
	Before Cut = "before"
	After  Cut = "after"
)

// Proxy listens in a directory of its own until the test ends.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	p := &Proxy{server: s, dir: t.TempDir(), conns: map[net.Conn]bool{}}
	l, err := net.Listen("unix", filepath.Join(p.dir, ".s.PGSQL."+server.Port))
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
		p.change(func() {
			p.closed = true
			for c := range p.conns {
				_ = c.Close()
			}
			p.thaw()
		})
		p.open.Wait()
	})
	return p
}

// Through is the URL of a database by way of the proxy.
func (p *Proxy) Through(t testing.TB, database string) string {
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

func (p *Proxy) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// Redirect leads new connections to another server.
func (p *Proxy) Redirect(s *Server) { p.change(func() { p.server = s }) }

// Forge changes the number of the server's process that new connections are told, as a pooler does.
func (p *Proxy) Forge() { p.change(func() { p.forge = true }) }

// Mute keeps notifications from arriving, or lets them arrive again: a pooler may take LISTEN and
// lose what comes of it.
func (p *Proxy) Mute(on bool) { p.change(func() { p.mute = on }) }

// CutNext ends the connection that sends the next COMMIT.
func (p *Proxy) CutNext(how Cut) { p.change(func() { p.cut = how }) }

// Cuts is how many were ended so.
func (p *Proxy) Cuts() (n int) {
	p.change(func() { n = p.cuts })
	return n
}

// Freeze holds up everything both ways until thaw is called, as when packets vanish.
func (p *Proxy) Freeze() (thaw func()) {
	frozen := make(chan struct{})
	p.change(func() { p.thaw(); p.frozen = frozen })
	return func() {
		p.change(func() {
			if p.frozen == frozen {
				p.thaw()
			}
		})
	}
}

// thaw is called with mu held.
func (p *Proxy) thaw() {
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

func (p *Proxy) pass() {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// hold keeps a connection among those that the end of the test ends.
func (p *Proxy) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return !p.closed
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.change(func() { delete(p.conns, c) })
}

func (p *Proxy) serve(t testing.TB, client net.Conn) {
	defer p.drop(client)
	if !p.hold(client) {
		return
	}
	p.mu.Lock()
	s := p.server
	p.mu.Unlock()
	up, err := s.Dial(t.Context())
	if err != nil {
		return
	}
	defer p.drop(up)
	if !p.hold(up) {
		return
	}
	var swallow sync.Mutex // held once the answer of the server is not to arrive
	p.open.Go(func() {
		defer client.Close()
		_ = p.answer(client, bufio.NewReaderSize(up, 64<<10), &swallow)
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.pass()
		switch p.cutting(buf[:n]) {
		case Before:
			return
		case After:
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

// answer carries what the server says, a message at a time, until an end.
func (p *Proxy) answer(client net.Conn, up *bufio.Reader, swallow *sync.Mutex) error {
	out := bufio.NewWriterSize(client, 64<<10)
	for {
		head, err := up.Peek(5) // type and length, which counts itself
		if err != nil {
			return err
		}
		kind, rest := head[0], int64(binary.BigEndian.Uint32(head[1:]))+1
		if !swallow.TryLock() {
			return nil // it has answered
		}
		p.pass()
		p.mu.Lock()
		forge, mute := p.forge && kind == 'K', p.mute && kind == 'A'
		p.mu.Unlock()
		to := io.Writer(out)
		if mute {
			to = io.Discard
		}
		if forge {
			_, err = up.Discard(5 + 4)
			_, _ = to.Write([]byte{'K', 0, 0, 0, 12, 0, 0, 0, 1})
			rest -= 5 + 4
		}
		if err == nil {
			_, err = io.CopyN(to, up, rest)
		}
		if err == nil && up.Buffered() == 0 {
			err = out.Flush()
		}
		swallow.Unlock()
		if err != nil {
			return err
		}
	}
}

func (p *Proxy) cutting(message []byte) Cut {
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
