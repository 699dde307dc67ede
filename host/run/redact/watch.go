package redact

// A Watch finds, in content that arrives in pieces, the values that were protected when it was made. It is safe
// for concurrent use.
type Watch struct {
	search  *search
	longest int
}

// Watch returns a Watch for the values of 8 bytes or more that are protected now. Shorter ones turn up in files
// by chance.
func (c *Canary) Watch() *Watch {
	if c.Off || len(c.within) == 0 {
		return &Watch{}
	}
	return &Watch{c.search, c.Longest}
}

// Leaks reports whether a piece that follows tail contains a protected value, also across the border, and
// returns the tail for the next call.
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

// Text reports whether a text contains a protected value.
func (w *Watch) Text(s string) bool { return w.search != nil && w.search.in([]byte(s)) }
