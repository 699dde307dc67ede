package abi

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Cut shortens s to at most max characters.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	n := 0
	for i := range s {
		if n == max {
			return s[:i]
		}
		n++
	}
	return s
}

// Clean makes text from a guest safe to show anywhere: invalid UTF-8 becomes U+FFFD,
// control characters, bidirectional overrides, zero-width and tag characters are removed,
// and line feeds and tabs become spaces.
func Clean(s string) string { return clean(s, false) }

// CleanLines is Clean for text of several lines: it keeps line feeds.
func CleanLines(s string) string { return clean(s, true) }

// CleanJSON applies Clean to every string of a JSON text, names included. If there is
// nothing to clean it returns text itself; of names that become equal, one remains.
func CleanJSON(text []byte) ([]byte, error) {
	if s := string(text); !strings.Contains(s, `\`) && Clean(s) == s {
		return text, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // keep the spelling
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(cleanAll(v))
}

func cleanAll(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case []any:
		for i, one := range v {
			v[i] = cleanAll(one)
		}
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[Clean(name)] = cleanAll(one)
		}
		return all
	}
	return v
}

func clean(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0,
			r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
			r >= 0x200b && r <= 0x200f, r == 0x2060, r == 0xfeff,
			r == 0x2028, r == 0x2029, r == 0x061c,
			r >= 0xe0000 && r <= 0xe007f:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
