package egress

import (
	"bytes"
	"net/textproto"
	"net/url"
	"sort"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A part of a text has its own escaping, such as a JSON string or a piece of a URL. plain
// is the unescaped text, and write escapes text again.
type part struct {
	from, to int
	plain    string
	write    func(string) string
}

// hideParts is hide for a text with parts, in order. It rewrites parts whose unescaped text
// contains values. It takes two passes for any number of parts, because a server can send
// millions.
func (v *values) hideParts(text []byte, parts []part, found func(mark string, at int)) []byte {
	more := make([]int, len(parts)) // values in the unescaped text of each, less those in its spelling
	ends := make([]int, len(parts)) // of each, in all
	var all []byte
	for i, p := range parts {
		all = append(append(all, p.plain...), 0)
		ends[i] = len(all)
	}
	if len(parts) > 0 {
		v.hide(all, func(_ string, at int) { more[sort.SearchInts(ends, at+1)]++ })
		v.hide(text, func(_ string, at int) {
			if i := sort.Search(len(parts), func(i int) bool { return parts[i].to > at }); i < len(parts) &&
				parts[i].from <= at {
				more[i]--
			}
		})
	}
	var out []byte
	at := 0
	for i, p := range parts {
		if more[i] > 0 {
			out = append(out, v.hide(text[at:p.from], found)...)
			out = append(out, p.write(string(v.hide([]byte(p.plain), found)))...)
			at = p.to
		}
	}
	return append(out, v.hide(text[at:], found)...)
}

// hideBody hides values in a body, which may be JSON or a form.
func (v *values) hideBody(body []byte, headers [][2]string, found func(mark string, at int)) []byte {
	for _, pair := range headers {
		if strings.EqualFold(pair[0], "Content-Type") &&
			strings.HasPrefix(strings.ToLower(pair[1]), "application/x-www-form-urlencoded") {
			return v.hideParts(body, percentParts(string(body)), found)
		}
	}
	return v.hideParts(body, jsonParts(body), found)
}

func (v *values) hideURL(address string, found func(mark string, at int)) string {
	return string(v.hideParts([]byte(address), percentParts(address), found))
}

// hideHeaders hides values in headers, which may be URLs, and spells names canonically.
func (v *values) hideHeaders(of string, headers [][2]string, found func(where, mark string)) (out [][2]string) {
	for _, pair := range headers {
		name := textproto.CanonicalMIMEHeaderKey(pair[0])
		out = append(out, [2]string{name, v.hideURL(pair[1], atPlace(of+" header "+name, found))})
	}
	return out
}

// atPlace returns a function that reports values found at where; found may be nil.
func atPlace(where string, found func(where, mark string)) func(mark string, at int) {
	return func(mark string, _ int) {
		if found != nil {
			found(where, mark)
		}
	}
}

// jsonParts returns the strings with escapes in a JSON text, and none if it is not JSON.
func jsonParts(body []byte) (out []part) {
	if bytes.IndexByte(body, '\\') < 0 {
		return nil
	}
	if _, err := strictjson.Parse(body, strictjson.ParseOptions{AnyKind: true}); err != nil {
		return nil
	}
	quote := func(s string) string { return string(strictjson.AppendQuote(nil, s)) }
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		from, escaped := i, false
		for i++; body[i] != '"'; i++ {
			if body[i] == '\\' {
				escaped = true
				i++
			}
		}
		if escaped {
			out = append(out, part{from, i + 1, strictjson.String(body[from : i+1]), quote})
		}
	}
	return out
}

// percentParts returns the pieces with escapes of a URL or form.
func percentParts(text string) (out []part) {
	for from := 0; from < len(text); from++ {
		to := from + strings.IndexAny(text[from:]+"/", `/?&=;#, "'<>()`)
		if piece := text[from:to]; strings.IndexByte(piece, '%') >= 0 {
			if meant, err := url.QueryUnescape(piece); err == nil {
				out = append(out, part{from, to, meant, escapeAround})
			}
		}
		from = to
	}
	return out
}

// escapeAround escapes a text except its placeholders.
func escapeAround(text string) string {
	return strings.NewReplacer("%7B%7B", "{{", "%7D%7D", "}}", "%3A", ":", "%23", "#").Replace(url.QueryEscape(text))
}
