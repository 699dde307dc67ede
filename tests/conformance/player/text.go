//go:build wasip1 && (abi || stdio)

package main

import (
	"strconv"
	"strings"
)

// What the player needs of JSON. Scripts are well-formed, so nothing here
// reports errors; a missing member is "".

// member returns the text of a member of an object.
func member(object, name string) (value string) {
	eachMember(object, func(n, v string) {
		if n == name {
			value = v
		}
	})
	return value
}

func eachMember(object string, do func(name, value string)) {
	if !strings.HasPrefix(object, "{") {
		return
	}
	rest := trim(object[1:])
	for strings.HasPrefix(rest, `"`) {
		n := valueLen(rest)
		name := text(rest[:n])
		rest = trim(trim(rest[n:])[1:]) // the colon
		n = valueLen(rest)
		do(name, rest[:n])
		rest = trim(strings.TrimPrefix(trim(rest[n:]), ","))
	}
}

// withoutType is a message as a typed call has it.
func withoutType(message string) string {
	var b strings.Builder
	eachMember(message, func(name, value string) {
		if name == "type" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(name) + ":" + value)
	})
	return "{" + b.String() + "}"
}

// items returns the texts of an array's items.
func items(array string) (out []string) {
	if !strings.HasPrefix(array, "[") {
		return nil
	}
	rest := trim(array[1:])
	for rest != "" && rest[0] != ']' {
		n := valueLen(rest)
		out = append(out, rest[:n])
		rest = trim(strings.TrimPrefix(trim(rest[n:]), ","))
	}
	return out
}

// valueLen is the length of the value that s begins with.
func valueLen(s string) int {
	depth, inText := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
			if !inText && depth == 0 {
				return i + 1
			}
		case inText:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\n'):
			return i
		}
	}
	return len(s)
}

func trim(s string) string { return strings.TrimLeft(s, " \t\r\n") }

// text decodes a string; "" for anything else.
func text(s string) string {
	if len(s) < 2 || s[0] != '"' {
		return ""
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'u':
			n, _ := strconv.ParseUint(s[i+1:i+5], 16, 32)
			b.WriteRune(rune(n))
			i += 4
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// quote writes a string that needs no escapes but those of JSON itself.
func quote(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)
	return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"`
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func decimal(n int) string { return strconv.Itoa(n) }

func unhex(s string) []byte {
	out := make([]byte, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		n, _ := strconv.ParseUint(s[i:i+2], 16, 8)
		out = append(out, byte(n))
	}
	return out
}
