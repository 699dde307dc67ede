package engine

import (
	"strings"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxNesting bounds the nesting of targets in within and near.
const maxNesting = 3

// target reads a target, nil if it is missing.
func target(o object, name string, depth int) *Target {
	in, ok := o.object(name)
	if !ok {
		return nil
	}
	if depth > maxNesting {
		o.refuse(name, "targets lie at most %d deep in each other", maxNesting)
		return nil
	}
	switch byID, bySelector := in.has("element_id"), in.has("selector"); {
	case byID && bySelector:
		o.refuse(name, "element_id or selector, not both")
	case byID:
		return &Target{ElementID: in.must("element_id", maxName)}
	case bySelector:
		return &Target{Selector: selector(in, depth)}
	default:
		o.bad.set("INVALID_SELECTOR", "%s: an element_id or a selector is needed", o.path+name)
	}
	return nil
}

func selector(o object, depth int) *Selector {
	in, ok := o.object("selector")
	if !ok {
		return nil
	}
	s := &Selector{Selector: page.Selector{
		TestID: usable(in, "test_id"), ID: usable(in, "id"), Role: usable(in, "role"), Name: usable(in, "name"),
		Label: usable(in, "label"), Text: usable(in, "text"), Placeholder: usable(in, "placeholder"),
		CSS: in.text("css", maxCSS), Query: usable(in, "query"),
	}}
	if strings.TrimSpace(s.CSS) == "" {
		s.CSS = ""
	}
	if cssReads(s.CSS) {
		in.refuse("css", "it asks for an attribute that is not read")
	}
	s.Exact, s.Contains, s.Frame = in.flagp("exact"), usable(in, "contains"), in.text("frame", maxName)
	if s.Index = in.intp("index"); s.Index != nil && *s.Index > maxCandidates {
		in.refuse("index", "at most %d", maxCandidates)
	}
	s.Within, s.Near = target(in, "within", depth+1), target(in, "near", depth+1)
	if s.Selector == (page.Selector{}) {
		o.bad.set("INVALID_SELECTOR",
			"%sselector: one of test_id, id, role, name, label, text, placeholder, css, query is needed", o.path)
	}
	return s
}

// usable reads a text to match; a blank text counts as missing.
func usable(o object, name string) string {
	s := o.text(name, maxField)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return s
}

// cssReads reports whether a CSS selector tests an attribute that may not be read: testing
// [value^="a"], then [value^="b"], would spell out what was typed. It understands just enough CSS
// to find attribute selectors: comments, strings and escapes. As in CSS, the end of the text closes
// what is open.
func cssReads(css string) bool {
	s := cssScanner{text: css}
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"' || c == '\'':
			s.quoted(c)
		case strings.HasPrefix(s.text[s.at:], "/*"):
			s.comment()
		case c == '\\':
			s.escape()
		case c == '[':
			s.at++
			if !readable(s.attribute()) {
				return true
			}
		default:
			s.at++
		}
	}
	return false
}

// readable reports whether an attribute may be read: not what somebody typed, and not style or
// script.
func readable(name string) bool {
	name = strings.ToLower(name)
	return name != "value" && name != "style" && name != "srcdoc" && !strings.HasPrefix(name, "on")
}

type cssScanner struct {
	text string
	at   int
}

// quoted skips a string. An unclosed string ends with its line.
func (s *cssScanner) quoted(quote byte) {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case '\\':
			s.at++
		case quote, '\n', '\r', '\f':
			s.at++
			return
		}
	}
}

func (s *cssScanner) comment() {
	if _, after, ok := strings.Cut(s.text[s.at+2:], "*/"); ok {
		s.at = len(s.text) - len(after)
		return
	}
	s.at = len(s.text)
}

// attribute returns the name at the start of an attribute selector, without its namespace.
func (s *cssScanner) attribute() string {
	var name strings.Builder
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case strings.HasPrefix(s.text[s.at:], "/*"):
			s.comment()
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			s.at++
		case c == '|' && !strings.HasPrefix(s.text[s.at:], "|="):
			s.at++
			name.Reset()
		case strings.IndexByte("]=~|^$*\"'[", c) >= 0 && !(c == '*' && strings.HasPrefix(s.text[s.at:], "*|")):
			return name.String()
		case c == '\\':
			name.WriteString(s.escape())
		default:
			name.WriteByte(c)
			s.at++
		}
	}
	return name.String()
}

// escape returns the character that an escape stands for: up to six hexadecimal digits and a blank,
// or the character itself.
func (s *cssScanner) escape() string {
	s.at++
	r, digits := rune(0), 0
	for digits < 6 && s.at < len(s.text) {
		d := strings.IndexByte("0123456789abcdef", s.text[s.at]|0x20)
		if d < 0 || d < 10 && s.text[s.at] != "0123456789"[d] {
			break
		}
		r, digits, s.at = r<<4|rune(d), digits+1, s.at+1
	}
	switch {
	case digits > 0:
		if strings.HasPrefix(s.text[s.at:], "\r\n") {
			s.at += 2
		} else if s.at < len(s.text) && strings.IndexByte(" \t\n\r\f", s.text[s.at]) >= 0 {
			s.at++
		}
		return string(r)
	case s.at < len(s.text):
		s.at++
		return s.text[s.at-1 : s.at]
	}
	return ""
}
