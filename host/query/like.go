package query

import (
	"context"
	"unicode/utf8"
)

// A wildcard is the syntax of the patterns of LIKE or GLOB.
type wildcard struct {
	many, one rune
	escape    rune // -1 for none
	sets      bool // [a-z]
	fold      bool // ASCII letters are equal in either case
}

var (
	likes = wildcard{many: '%', one: '_', escape: -1, fold: true}
	globs = wildcard{many: '*', one: '?', escape: -1, sets: true}
)

// lookEvery is the number of characters between checks of the time limit.
const lookEvery = 1 << 16

// match reports whether the pattern matches the whole text. It returns ctx's error when ctx ends.
func (w wildcard) match(ctx context.Context, pattern, text []byte) (bool, error) {
	p, t := 0, 0
	star, mark := -1, 0 // behind the last w.many in pattern, and where in text the rest was tried last
	for steps := 1; ; steps++ {
		if steps%lookEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if p < len(pattern) {
			c, n := utf8.DecodeRune(pattern[p:])
			if c == w.many && c != w.escape {
				if p += n; p == len(pattern) {
					return true, nil
				}
				star, mark = p, t
				continue
			}
			if t < len(text) {
				r, size := utf8.DecodeRune(text[t:])
				if ok, n := w.takes(pattern[p:], r); ok {
					p, t = p+n, t+size
					continue
				}
			}
		} else if t == len(text) {
			return true, nil
		}
		if star < 0 || t == len(text) { // what follows cannot match a shorter text either
			return false, nil
		}
		_, size := utf8.DecodeRune(text[mark:])
		mark += size
		p, t = star, mark
	}
}

// takes reports whether the first element of a pattern matches r, and the element's length.
func (w wildcard) takes(pattern []byte, r rune) (ok bool, n int) {
	c, n := utf8.DecodeRune(pattern)
	switch {
	case c == w.escape:
		if n == len(pattern) {
			return false, n
		}
		escaped, more := utf8.DecodeRune(pattern[n:])
		return w.same(escaped, r), n + more
	case c == w.one:
		return true, n
	case c == '[' && w.sets:
		return set(pattern, r)
	}
	return w.same(c, r), n
}

func (w wildcard) same(a, b rune) bool { return a == b || w.fold && lower(a) == lower(b) }

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// set reports whether a pattern's set, which begins with [, contains r, and the set's length. An unclosed set contains
// nothing.
func set(pattern []byte, r rune) (ok bool, n int) {
	at := 1
	next := func() (rune, bool) {
		if at == len(pattern) {
			return 0, false
		}
		c, size := utf8.DecodeRune(pattern[at:])
		at += size
		return c, true
	}
	c, more := next()
	not := more && c == '^'
	if not {
		c, more = next()
	}
	in, before := false, rune(-1)
	for first := true; more && (c != ']' || first); first = false {
		if c == '-' && before >= 0 && at < len(pattern) && pattern[at] != ']' {
			end, _ := next()
			in = in || before <= r && r <= end
			before = -1
		} else {
			in = in || c == r
			before = c
		}
		c, more = next()
	}
	return more && in != not, at
}
