//go:build unix

package postgres

import (
	"bytes"
	"slices"
	"strings"
)

// A Cut is a side of a COMMIT.
type Cut string

// The cuts: before the server has the COMMIT, and after it has answered, which nobody hears.
const (
	Before Cut = "before"
	After  Cut = "after"
)

// A Held is a connection that is held at a point, or waits for one.
type Held struct {
	Reached chan struct{} // closed once it is at the point
	cut     Cut
	says    []string
	on      chan bool // capacity 1: whether it goes on
}

// Hold holds the next connection that comes to a COMMIT of a transaction whose statements and arguments
// have all that says names. Whoever holds it calls Pass or Drop.
func (p *Proxy) Hold(cut Cut, says ...string) *Held {
	h := newHeld(cut, says...)
	p.change(func() { p.points = append(p.points, h) })
	return h
}

func newHeld(cut Cut, says ...string) *Held {
	return &Held{Reached: make(chan struct{}), cut: cut, says: says, on: make(chan bool, 1)}
}

// Forget has a point held no more. A connection that is there goes on.
func (p *Proxy) Forget(h *Held) {
	p.change(func() { p.points = slices.DeleteFunc(p.points, func(x *Held) bool { return x == h }) })
	h.Pass()
}

// Pass lets a connection go on from its point.
func (h *Held) Pass() { h.decide(true) }

// Drop ends it there, also when it is still to come.
func (h *Held) Drop() { h.decide(false) }

func (h *Held) decide(on bool) {
	select {
	case h.on <- on:
	default:
	}
}

// wait is called at the point; it reports whether the connection goes on.
func (h *Held) wait() bool {
	close(h.Reached)
	return <-h.on
}

// A talk is what the client of one connection says.
type talk struct {
	prepared map[string]string // statements, by name
	said     strings.Builder   // since the newest BEGIN
}

// What is looked at of a message, and of a transaction, at most.
const (
	heardBytes = 4 << 10
	saidBytes  = 1 << 20
)

// hear takes the beginning of a message, and reports whether it is a COMMIT.
func (k *talk) hear(b []byte) bool {
	kind, b := b[0], b[5:]
	first, rest, _ := bytes.Cut(b, []byte{0})
	switch kind {
	case 'P': // name, statement
		text, _, _ := bytes.Cut(rest, []byte{0})
		k.prepared[string(first)] = string(text)
	case 'B': // portal, name, arguments
		name, args, _ := bytes.Cut(rest, []byte{0})
		return k.say(k.prepared[string(name)], args)
	case 'Q':
		return k.say(string(first), nil)
	}
	return false
}

func (k *talk) say(text string, args []byte) bool {
	lower := strings.ToLower(text)
	if strings.HasPrefix(lower, "begin") {
		k.said.Reset()
	}
	if k.said.Len() < saidBytes {
		k.said.WriteString(text)
		k.said.Write(args)
	}
	return lower == "commit" || strings.HasSuffix(lower, "; commit")
}

// meets takes the beginning of a message, and returns the point that it comes to.
func (p *Proxy) meets(k *talk, b []byte) (at *Held) {
	if !k.hear(b) {
		return nil
	}
	said := k.said.String()
	p.change(func() {
		i := slices.IndexFunc(p.points, func(h *Held) bool {
			return !slices.ContainsFunc(h.says, func(s string) bool { return !strings.Contains(said, s) })
		})
		if i < 0 {
			return
		}
		at = p.points[i]
		p.points = slices.Delete(p.points, i, i+1)
		if p.held = append(p.held, at); at == p.cut {
			p.cuts++
		}
	})
	return at
}
