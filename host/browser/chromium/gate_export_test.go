package chromium

import (
	"bytes"
	"net/url"
)

// Fail has the gate's listener fail, as no caller can.
func (g *Gate) Fail() {
	g.mu.Lock()
	l := g.listener
	g.mu.Unlock()
	_ = l.Close()
}

// Merge is the merging of denials.
type Merge struct{ d denials }

// NewMerge tells told.
func NewMerge(told func(Denial)) *Merge { return &Merge{denials{told: told, left: mostLines}} }

func (m *Merge) Add(host string, port uint16, verdict string) {
	m.d.add(Denial{host, port, verdict, 1})
}
func (m *Merge) Close() { m.d.close() }

// Last is the newest verdict on a place.
func (m *Merge) Last(host string, port uint16) string { return m.d.last(place{host, port}) }

// Authority reads the target of a CONNECT.
func Authority(s string) (host string, port uint16, ok bool) {
	p, ok := authority(s)
	return p.host, p.port, ok
}

// Absolute reads the target of another request.
func Absolute(u *url.URL) (host string, port uint16, ok bool) {
	p, ok := absolute(u)
	return p.host, p.port, ok
}

// Preamble reads what a tunnel begins with. sent is what would be sent on.
func Preamble(host string, port uint16, tls, plain bool, data []byte) (verdict string, sent []byte, err error) {
	o := &preamble{from: bytes.NewReader(data)}
	verdict = o.read(place{host, port}, tls, plain)
	return verdict, o.seen, o.err
}

// MostPreamble is how much is read of it.
const MostPreamble = mostPreamble
