package run

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// spellings are how servers write a value that escape more than they must, or
// in another way than this host does (R163): JSON as Go, Python and PHP have
// it, percent as JavaScript and Python do, HTML, UTF-16.
func spellings(value string) [][]byte {
	quoted := strictjson.AppendQuote(nil, value)
	plain := string(quoted[1 : len(quoted)-1])
	out := []string{slashed(plain), ascii(plain), slashed(ascii(plain))}
	if b, err := json.Marshal(value); err == nil { // <, > and & are escaped
		out = append(out, string(b[1:len(b)-1]), ascii(string(b[1:len(b)-1])))
	}
	strict := strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	percent := []string{url.QueryEscape(value), url.PathEscape(value), strict, strings.ReplaceAll(strict, "%2F", "/"),
		strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(strict)}
	for _, p := range percent {
		out = append(out, p, percents.ReplaceAllStringFunc(p, strings.ToLower))
	}
	markup := html.EscapeString(value)
	out = append(out, markup, strings.ReplaceAll(markup, "&#34;", "&quot;"), strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;").Replace(markup))
	all := wide(value)
	for _, text := range out {
		all = append(all, []byte(text))
	}
	return all
}

// wide is a value in UTF-16, both ways round: a body may be in any charset, and a
// file of another system often is.
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

var percents = regexp.MustCompile(`%[0-9A-F]{2}`)

func slashed(text string) string { return strings.ReplaceAll(text, "/", `\/`) }

// ascii escapes what is not ASCII as JSON does.
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
