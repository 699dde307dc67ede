package main

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxText  = 256 << 10 // of one text in a record
	maxKey   = 1000      // of a key; the host's bound is 1,024 bytes
	maxShort = 16 << 10  // names, addresses, paths
)

// repaired makes a text valid UTF-8: what is not becomes U+FFFD. NUL, which not
// every store can hold, goes.
func repaired(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// decoded is repaired for a text in the encoding that its commit names. Git
// writes UTF-8 unless told otherwise; of the rest Latin-1 is known here.
func decoded(s, encoding string) string {
	switch strings.ToLower(encoding) {
	case "iso-8859-1", "iso8859-1", "latin1", "latin-1":
		if !utf8.ValidString(s) {
			s = fromLatin1(s)
		}
	}
	return repaired(s)
}

func fromLatin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// cut shortens a text to at most n bytes, at a rune.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// utf8Name is the key of a ref: its name, or, if that is not UTF-8 or too long, the
// readable part of it and a digest, so that different names keep different keys.
func utf8Name(name string) string {
	if utf8.ValidString(name) && len(name) <= maxKey {
		return name
	}
	return cut(repaired(name), maxKey-70) + "~" + digest(name)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// timeText writes a time with the offset it was recorded at, or "" for one that
// RFC 3339 cannot say.
func timeText(t time.Time) string {
	_, offset := t.Zone()
	if offset < -24*3600 || offset > 24*3600 || offset%60 != 0 {
		t = t.UTC()
	}
	if y := t.Year(); t.IsZero() || y < 1 || y > 9999 || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339)
}
