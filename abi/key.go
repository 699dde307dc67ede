package abi

import (
	"strconv"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// CanonicalKey appends the canonical form of a record key: the text of a string, or an
// array of strings as JSON without white space, each spelled as by AppendQuote. raw is a
// value that a Scanner has accepted. parts is 0 for a string, otherwise the length of the
// array. For anything else, such as an empty string, array or part, ok is false and dst is
// returned unchanged. The caller checks limits on length and parts.
func CanonicalKey(dst, raw []byte) (key []byte, parts int, ok bool) {
	v := strictjson.ValueOf(raw)
	if v.Kind == strictjson.KindString {
		return strictjson.AppendString(dst, v.Raw), 0, len(v.Raw) > 2
	}
	if v.Kind != strictjson.KindArray {
		return dst, 0, false
	}
	key = append(dst, '[')
	for part := range v.Items() {
		if part.Kind != strictjson.KindString || len(part.Raw) == 2 {
			return dst, 0, false
		}
		if parts++; parts > 1 {
			key = append(key, ',')
		}
		key = strictjson.AppendNormal(key, part.Raw)
	}
	if parts == 0 {
		return dst, 0, false
	}
	return append(key, ']'), parts, true
}

// keyText returns the text form of a key that is a string or a number.
func keyText(v strictjson.Value) (string, bool) {
	switch v.Kind {
	case strictjson.KindString:
		return v.Text()
	case strictjson.KindNumber:
		return canonicalNumber(string(v.Raw)), true
	}
	return "", false
}

// canonicalNumber spells equal integers alike, so that 1 and 1.0 are one key.
func canonicalNumber(raw string) string {
	if n, ok := strictjson.Int64([]byte(raw)); ok {
		return itoa(n)
	}
	if f, err := strconv.ParseFloat(raw, 64); err == nil {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return raw
}
