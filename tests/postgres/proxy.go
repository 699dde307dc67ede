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
	"slices"
	"sync"
	"sync/atomic"
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
	points []*Held // that nobody came to
	held   []*Held // and those that somebody did
	cut    *Held   // of CutNext
	cuts   int
	forge  bool
	mute   bool
	frozen chan struct{} // nil while everything passes
	closed bool
}

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
			for _, h := range append(p.points, p.held...) {
				h.Drop()
			}
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
func (p *Proxy) CutNext(how Cut) {
	h := newHeld(how)
	h.Drop()
	p.change(func() {
		p.points = append(slices.DeleteFunc(p.points, func(x *Held) bool { return x == p.cut }), h)
		p.cut = h
	})
}

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
	var held atomic.Pointer[Held] // once the answer to a COMMIT is
	p.open.Go(func() {
		defer client.Close()
		_ = p.answer(client, bufio.NewReaderSize(up, 64<<10), &held)
	})
	_ = p.ask(up, bufio.NewReaderSize(client, 64<<10), &held)
}

// ask carries what the client says, a message at a time, until an end.
func (p *Proxy) ask(up net.Conn, client *bufio.Reader, held *atomic.Pointer[Held]) error {
	out, k := bufio.NewWriterSize(up, 64<<10), talk{prepared: map[string]string{}}
	for head := 4; ; head = 5 { // the first message has no type
		b, err := client.Peek(head)
		if err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(b[head-4:])) + head - 4 // the length counts itself
		p.pass()
		if head == 5 {
			if b, err = client.Peek(min(size, heardBytes)); err != nil {
				return err
			}
			h := p.meets(&k, b)
			if h != nil && h.cut == After {
				held.Store(h)
			} else if h != nil && (out.Flush() != nil || !h.wait()) {
				return nil
			}
		}
		if _, err = io.CopyN(out, client, int64(size)); err == nil && client.Buffered() == 0 {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// answer carries what the server says, a message at a time, until an end.
func (p *Proxy) answer(client net.Conn, up *bufio.Reader, held *atomic.Pointer[Held]) error {
	out := bufio.NewWriterSize(client, 64<<10)
	for {
		head, err := up.Peek(5) // type and length, which counts itself
		if err != nil {
			return err
		}
		kind, rest := head[0], int64(binary.BigEndian.Uint32(head[1:]))+1
		if h := held.Load(); h != nil {
			tag, _ := up.Peek(int(min(rest, 11)))
			if kind == 'E' || kind == 'C' && (bytes.HasSuffix(tag, []byte("COMMIT")) || bytes.HasSuffix(tag, []byte("ROLLBA"))) {
				held.Store(nil)
				if out.Flush() != nil || !h.wait() {
					return nil
				}
			}
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
		if err != nil {
			return err
		}
	}
}
