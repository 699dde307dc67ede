package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// spellings returns the ways in which servers may write a value that escape more than necessary or differ from
// this host: JSON as in Go, Python and PHP, percent encoding as in JavaScript and Python, HTML, UTF-16.
func spellings(value string) [][]byte {
	quoted := strictjson.AppendQuote(nil, value)
	plain := string(quoted[1 : len(quoted)-1])
	out := []string{slashed(plain), ascii(plain), slashed(ascii(plain))}
	if b, err := json.Marshal(value); err == nil { // this escapes <, > and &
		out = append(out, string(b[1:len(b)-1]), ascii(string(b[1:len(b)-1])))
	}
	strict := strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	percent := []string{url.QueryEscape(value), url.PathEscape(value), strict, strings.ReplaceAll(strict, "%2F", "/"),
		strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(strict)}
	for _, p := range percent {
		out = append(out, p, percents().ReplaceAllStringFunc(p, strings.ToLower))
	}
	markup := html.EscapeString(value)
	out = append(out, markup, strings.ReplaceAll(markup, "&#34;", "&quot;"),
		strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;").Replace(markup))
	all := wide(value)
	for _, text := range out {
		all = append(all, []byte(text))
	}
	return all
}

// wide returns a value in UTF-16, little and big endian, since a body or file may be in that charset.
func wide(value string) [][]byte {
	if len(value) < shortest {
		return nil
	}
	var little, big []byte
	for _, unit := range utf16.Encode([]rune(value)) {
		little = binary.LittleEndian.AppendUint16(little, unit)
		big = binary.BigEndian.AppendUint16(big, unit)
	}
	return [][]byte{little, big}
}

var percents = lazily(`%[0-9A-F]{2}`)

func slashed(text string) string { return strings.ReplaceAll(text, "/", `\/`) }

// ascii escapes all characters outside ASCII as JSON does.
func ascii(text string) string {
	var out strings.Builder
	for _, c := range text {
		if c < utf8.RuneSelf {
			out.WriteRune(c)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, c) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// shortest is the shortest encoding that is searched for, in bytes; shorter ones would match by chance.
const shortest = 4

// Forms returns the encodings in which a value is searched for outside of records, without duplicates.
func Forms(value string) (out [][]byte) {
	for _, f := range append(forms(value), spellings(value)...) {
		if len(f) >= shortest && !slices.ContainsFunc(out, func(o []byte) bool { return bytes.Equal(o, f) }) {
			out = append(out, f)
		}
	}
	return out
}

// forms returns the encodings that are searched for everywhere: raw, JSON, percent, hex, and base64 in its three
// alignments.
func forms(value string) [][]byte {
	raw := []byte(value)
	quoted := strictjson.AppendQuote(nil, value)
	out := [][]byte{
		raw, quoted[1 : len(quoted)-1],
		[]byte(url.QueryEscape(value)), []byte(url.PathEscape(value)),
		[]byte(hex.EncodeToString(raw)), []byte(strings.ToUpper(hex.EncodeToString(raw))),
	}
	for shift := range 3 {
		padded := append(make([]byte, shift), raw...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			e := enc.EncodeToString(padded)
			// Skip characters that also hold bits of neighbouring bytes.
			from, to := []int{0, 2, 3}[shift], len(e)
			if len(padded)%3 != 0 {
				to--
			}
			out = append(out, []byte(e[from:to]))
		}
	}
	return out
}
