package redact

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Canary finds protected values in what a guest emits. Without protected values it costs one comparison.
type Canary struct {
	Off     bool     // leak_canary is off; texts are redacted all the same
	within  [][]byte // encodings of values of 8 bytes or more, found anywhere
	search  *search  // finds within; nil for none
	whole   []string // values of 4 to 7 bytes, found only as a whole string
	words   []string // answers and sealed values of 4 to 7 bytes, also found as a word within texts
	Longest int      // longest encoding in bytes; text is held back up to this length
	Hits    int64    // redactions so far
}

// ProtectWord makes Text redact a value of 4 to 7 bytes also as a word within a text. It is for codes that the
// owner typed; a stored secret that happens to be a common number is not treated this way.
func (c *Canary) ProtectWord(value string) {
	if len(value) >= 4 && len(value) < 8 && !slices.Contains(c.words, value) {
		c.words = append(c.words, value)
	}
}

// Protect remembers a value until the run ends. Values shorter than 4 bytes are ignored.
func (c *Canary) Protect(value string) {
	switch {
	case len(value) >= 8:
		for _, form := range forms(value) {
			if len(form) >= 8 && !slices.ContainsFunc(c.within, func(o []byte) bool { return bytes.Equal(o, form) }) {
				c.within = append(c.within, form)
				c.Longest = max(c.Longest, len(form))
			}
		}
		c.search = newSearch(c.within)
	case len(value) >= 4:
		if !slices.Contains(c.whole, value) {
			c.whole = append(c.whole, value)
		}
	}
}

// Armed reports whether there is anything to look for.
func (c *Canary) Armed() bool { return len(c.within) > 0 || len(c.whole) > 0 }

// Leaks reports whether JSON text contains a protected value. It is false while the canary is off.
func (c *Canary) Leaks(raw []byte) bool {
	if c.Off || !c.Armed() {
		return false
	}
	return c.Find(raw)
}

// LeaksText is Leaks for plain text.
func (c *Canary) LeaksText(text []byte) bool {
	return !c.Off && c.Armed() && c.Find(strictjson.AppendQuote(nil, text))
}

// Find reports whether raw, which is JSON, contains a protected value, either as spelled or in a string once its
// escapes are decoded.
func (c *Canary) Find(raw []byte) bool {
	if c.spelled(raw) {
		return true
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	for token := range texts(raw) {
		if c.meant(strictjson.String(token)) {
			return true
		}
	}
	return false
}

func (c *Canary) spelled(raw []byte) bool {
	if c.search != nil && c.search.in(raw) {
		return true
	}
	for _, w := range c.whole {
		if bytes.Contains(raw, strictjson.AppendQuote(nil, w)) {
			return true
		}
	}
	return false
}

func (c *Canary) meant(text string) bool {
	return c.search != nil && c.search.in([]byte(text)) || slices.Contains(c.whole, text)
}

// Locate returns the JSON pointer of the first member that leaks, "" if only the whole value does. It stops
// above a member whose name is a protected value.
func (c *Canary) Locate(v strictjson.Value) string {
	i := 0
	for item := range v.Items() {
		if c.Find(item.Raw) {
			return "/" + strconv.Itoa(i) + c.Locate(item)
		}
		i++
	}
	for name, m := range v.Members() {
		if c.Find(strictjson.AppendQuote(nil, name)) {
			return ""
		}
		if c.Find(m.Raw) {
			return "/" + pointer.Replace(abi.Cut(abi.Clean(name), 64)) + c.Locate(m)
		}
	}
	return ""
}

// pointer escapes a member name for a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// Text replaces protected values in a text.
func (c *Canary) Text(s string) string {
	if !c.Armed() {
		return s
	}
	for _, w := range c.within {
		if n := strings.Count(s, string(w)); n > 0 {
			c.Hits += int64(n)
			s = strings.ReplaceAll(s, string(w), "[REDACTED_SECRET]")
		}
	}
	if slices.Contains(c.whole, s) {
		c.Hits++
		return "[REDACTED_SECRET]"
	}
	for _, w := range c.words {
		s = c.redactWord(s, w)
	}
	return s
}

// redactWord replaces a short value where it is a word by itself, and not as part of a longer number or word.
func (c *Canary) redactWord(s, word string) string {
	var out strings.Builder
	for from := 0; ; {
		at := strings.Index(s[from:], word)
		if at < 0 {
			return out.String() + s[from:]
		}
		end := from + at + len(word)
		out.WriteString(s[from : from+at])
		if isInWord(s, from+at, end) {
			out.WriteString(word)
		} else {
			c.Hits++
			out.WriteString("[REDACTED_SECRET]")
		}
		from = end
	}
}

// JSON redacts every string of a JSON value, member names included. If a protected value remains elsewhere, such
// as in a number, the whole value is replaced.
func (c *Canary) JSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !c.Armed() || !c.Find(raw) {
		return raw
	}
	out := make(json.RawMessage, 0, len(raw))
	at := 0
	for token, from := range texts(raw) {
		if text := strictjson.String(token); c.meant(text) {
			out = append(out, raw[at:from]...)
			out = strictjson.AppendQuote(out, c.Text(text))
			at = from + len(token)
		}
	}
	if out = append(out, raw[at:]...); c.Find(out) {
		c.Hits++
		return json.RawMessage(`"[REDACTED_SECRET]"`)
	}
	return out
}

// texts yields the strings of a JSON text, as spelled with quotes, and their offsets.
func texts(raw []byte) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		for i := 0; i < len(raw); i++ {
			if raw[i] != '"' {
				continue
			}
			from := i
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			if !yield(raw[from:i+1], from) {
				return
			}
		}
	}
}

// Assistance applies the profile Assistance to a text after protected values are replaced.
func (c *Canary) Assistance(s string, max int) string { return Assistance(c.Text(s), max) }
