package redact

// A Watch finds protected values in content that comes in pieces, as they were protected when
// it was made. It may be used in any goroutine.
type Watch struct {
	search  *search
	longest int
}

// Watch is what looks for the values that are protected now. Short ones are not looked for:
// in a file of any type they turn up by chance.
func (c *Canary) Watch() *Watch {
	if c.Off || len(c.within) == 0 {
		return &Watch{}
	}
	return &Watch{c.search, c.Longest}
}

// Leaks reports whether a piece behind tail has a protected value in it, and returns what has
// to come before the next.
func (w *Watch) Leaks(tail, piece []byte) (next []byte, leaks bool) {
	if w.search == nil {
		return nil, false
	}
	border := append(tail[:len(tail):len(tail)], piece[:min(len(piece), w.longest)]...)
	if len(tail) > 0 && w.search.in(border) || w.search.in(piece) {
		return nil, true
	}
	if len(piece) >= w.longest {
		return append([]byte(nil), piece[len(piece)-w.longest+1:]...), false
	}
	all := append(tail[:len(tail):len(tail)], piece...)
	return all[max(0, len(all)-w.longest+1):], false
}

// Text reports whether a text has a protected value in it.
func (w *Watch) Text(s string) bool { return w.search != nil && w.search.in([]byte(s)) }
