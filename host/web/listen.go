package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// listen opens the listeners of the options. On an error none stays open.
func (s *Server) listen() (err error) {
	defer func() {
		if err != nil {
			s.closeListeners()
		}
	}()
	var config *tls.Config
	if s.c.tls {
		c, err := newCertificate(s.o.Cert, s.o.Key, s.o.Log)
		if err != nil {
			return &OptionsError{err}
		}
		config = &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	for _, at := range s.o.Listen {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		host, _, _ := net.SplitHostPort(at)
		l = &limitedListener{Listener: l, s: s, tls: s.c.tls, proxied: !s.c.tls && !loopback(host)}
		if config != nil {
			l = tls.NewListener(l, config)
		}
		s.listeners = append(s.listeners, l)
	}
	if s.o.Local != nil {
		s.listeners = append(s.listeners, &limitedListener{Listener: s.o.Local, s: s})
	}
	if s.o.Socket == "" {
		return nil
	}
	l, err := listenSocket(s.o.Socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.listeners = append(s.listeners, &limitedListener{Listener: l, s: s})
	return nil
}

// listenSocket makes a socket that only its owner can open. It is made in a new directory and then
// moved, so at no time can others open it. A socket of a dead process is replaced.
func listenSocket(path string) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("socket %s is in use by another process", path)
	}
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s is there and is no socket", path)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := net.Listen("unix", made)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it could belong to another process by then
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// connections counts open connections.
type connections struct {
	mu        sync.Mutex // guards all below
	all       int
	byAddress map[netip.Addr]int
}

// limitedListener is a listener that rejects excess connections: with 429, or silently under TLS, where an
// answer would require a handshake.
type limitedListener struct {
	net.Listener
	s   *Server
	tls bool
	// proxied means that only listed proxies and this machine may connect, because the connection
	// is not encrypted.
	proxied bool
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at := addressOf(c)
		proxy := slices.ContainsFunc(l.s.c.proxies, func(p netip.Prefix) bool { return p.Contains(at) })
		if l.proxied && !proxy && !at.IsLoopback() {
			_ = c.Close()
			continue
		}
		if !l.s.open.acquire(at, l.s.o, proxy || !at.IsValid()) {
			l.refuse(c)
			continue
		}
		return &countedConn{Conn: c, release: sync.OnceFunc(func() { l.s.open.release(at) })}, nil
	}
}

const tooMany = `{"error":"rate_limited","message":"Too many connections. Close some, or wait.","details":{"retryAfterMs":1000,"scope":"global"}}`

func (l *limitedListener) refuse(c net.Conn) {
	defer c.Close()
	if l.tls {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte(
		"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: " +
			strconv.Itoa(len(tooMany)) + "\r\n\r\n" + tooMany))
}

// addressOf returns a peer's address, for IPv6 the /64, or an invalid address for the local socket.
func addressOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	at := tcp.AddrPort().Addr().Unmap()
	if at.Is6() && !at.IsLoopback() {
		if p, err := at.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return at
}

func (n *connections) acquire(at netip.Addr, o ServerOptions, manyUsers bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all >= o.Connections || !manyUsers && n.byAddress[at] >= o.PerAddress {
		return false
	}
	n.all++
	n.byAddress[at]++
	return true
}

func (n *connections) release(at netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all--
	if n.byAddress[at]--; n.byAddress[at] == 0 {
		delete(n.byAddress, at)
	}
}

// countedConn calls leave when it is closed.
type countedConn struct {
	net.Conn
	release func()
}

func (c *countedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
