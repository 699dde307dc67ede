package main

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	maxText   = 128 << 10 // of one text of a record
	maxLine   = 1 << 20   // of an object, unfolded
	maxHead   = 8 << 10   // of a line, name and parameters
	maxPeople = 500
	maxList   = 200
)

// unfolded returns an object's content lines, each whole, without those of the
// named properties, which hold pictures and the like; those of the first name
// are counted. An attachment may be as long as its object. What is not UTF-8 is Latin-1, as old programs write it.
func unfolded(data []byte, leaveOut ...string) (lines []string, first int) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var parts []string
	flush := func() {
		line := strings.Join(parts, "")
		parts = parts[:0]
		colon := strings.IndexByte(line, ':')
		switch {
		case line == "":
		case named(line, leaveOut):
			if named(line, leaveOut[:1]) {
				first++
			}
		case len(line) > maxLine && !named(line, []string{"ATTACH"}) || colon > maxHead || colon < 0:
		default:
			lines = append(lines, line)
		}
	}
	for raw := range strings.Lines(utf8Of(data)) {
		raw = strings.TrimRight(raw, "\r\n")
		if raw != "" && (raw[0] == ' ' || raw[0] == '\t') && len(parts) > 0 {
			parts = append(parts, raw[1:])
			continue
		}
		flush()
		parts = append(parts, raw)
	}
	flush()
	return lines, first
}

// named reports whether a line holds one of the properties, with or without a group.
func named(line string, names []string) bool {
	end := strings.IndexAny(line, ":;")
	if end < 0 {
		return false
	}
	name := line[strings.LastIndexByte(line[:end], '.')+1 : end]
	for _, n := range names {
		if strings.EqualFold(name, n) {
			return true
		}
	}
	return false
}

func utf8Of(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	var b strings.Builder
	b.Grow(len(data) + len(data)/8)
	for _, c := range data {
		b.WriteRune(rune(c))
	}
	return b.String()
}

// unescape undoes \n, \, \; and \\. Anything else after a backslash stays: there
// are programs that write Windows paths as they are.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case 'n', 'N':
			b.WriteByte('\n')
		case ',', ';', '\\':
			b.WriteByte(s[i+1])
		default:
			b.WriteByte('\\')
			continue
		}
		i++
	}
	return b.String()
}

// split cuts at a separator that is not escaped.
func split(s string, separator byte) []string {
	var items []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case separator:
			items = append(items, s[start:i])
			start = i + 1
		}
	}
	return append(items, s[start:])
}

// clean drops NUL, which not every store can hold, and bounds a text.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, ""))
}
