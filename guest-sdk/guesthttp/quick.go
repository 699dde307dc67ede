package guesthttp

import (
	"encoding/binary"
	"net/http"
	"strings"
)

// quickReply reads a reply in exactly the form that hosts write, without escapes; anything
// else is left to readReply. It saves most of the cost of a small answer.
func quickReply(raw []byte) (r reply, ok bool) {
	if !isPlain(raw) {
		return r, false
	}
	c := cursor{left: string(raw)}
	handle := c.after(`{"handle":`).number()
	status := c.after(`,"status":`).number()
	c.after(`,"headers":[`)
	r.header = c.headers()
	c.after(`],"url":"`).plain()
	c.after(`,"redirects":`).number()
	r.bytes = -1
	if strings.HasPrefix(c.left, `,"bytes":`) {
		r.bytes = c.after(`,"bytes":`).number()
	}
	c.after("}")
	if c.bad || c.left != "" || status < 200 || status > 999 {
		return r, false
	}
	r.handle, r.status = int32(handle), int(status)
	return r, true
}

// A cursor reads a text from its front.
type cursor struct {
	left string
	bad  bool // the text differed from what was expected
}

// after skips the given text.
func (c *cursor) after(text string) *cursor {
	if !strings.HasPrefix(c.left, text) {
		c.bad, c.left = true, ""
		return c
	}
	c.left = c.left[len(text):]
	return c
}

// number reads a non-negative number of at most eight digits.
func (c *cursor) number() (n int64) {
	i := 0
	for i < len(c.left) && i < 9 && '0' <= c.left[i] && c.left[i] <= '9' {
		n = n*10 + int64(c.left[i]-'0')
		i++
	}
	if i == 0 || i == 9 || c.left[0] == '0' && i > 1 {
		c.bad = true
	}
	c.left = c.left[i:]
	return n
}

// plain reads up to the next quotation mark and skips it.
func (c *cursor) plain() string {
	i := strings.IndexByte(c.left, '"')
	if i < 0 {
		c.bad, c.left = true, ""
		return ""
	}
	text := c.left[:i]
	c.left = c.left[i+1:]
	return text
}

// isPlain reports whether a text is printable ASCII without backslashes.
func isPlain(text []byte) bool {
	const ones = 0x0101010101010101
	for len(text) >= 8 {
		w := binary.LittleEndian.Uint64(text)
		x := w ^ ones*'\\'
		if (w|(w-ones*' ')|(x-ones)|(w+ones))&(ones<<7) != 0 { // as in abi: over 127, under 32, a backslash, 127
			return false
		}
		text = text[8:]
	}
	for _, b := range text {
		if b < ' ' || b > '~' || b == '\\' {
			return false
		}
	}
	return true
}

// headers reads pairs whose names are in the form of http.Header.
func (c *cursor) headers() http.Header {
	h := make(http.Header, 8)
	for values := []string(nil); strings.HasPrefix(c.left, `["`) || strings.HasPrefix(c.left, `,["`); {
		if len(h) > 0 {
			c.after(",")
		}
		name := c.after(`["`).plain()
		value := c.after(`,"`).plain()
		if c.after("]"); !canonical(name) {
			c.bad = true
		}
		if c.bad {
			return nil
		}
		if had := h[name]; had != nil {
			h[name] = append(had, value)
			continue
		}
		if len(values) == cap(values) {
			values = make([]string, 0, 8) // one allocation for several names, most of which have one value
		}
		n := len(values)
		values = append(values, value)
		h[name] = values[n : n+1 : n+1]
	}
	return h
}

// canonical reports whether a name consists of letters, digits and hyphens in the case of
// http.CanonicalHeaderKey.
func canonical(name string) bool {
	upper := true
	for i := range len(name) {
		b := name[i]
		switch {
		case upper && 'A' <= b && b <= 'Z', !upper && 'a' <= b && b <= 'z', '0' <= b && b <= '9', b == '-':
		default:
			return false
		}
		upper = b == '-'
	}
	return name != ""
}
