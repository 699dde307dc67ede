package egress

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// Placeholders of a recording, for a secret, for a credential, and for text that only looks
// like a placeholder.
const (
	secretMark     = "{{secret:"
	credentialMark = "{{credential:"
	literalMark    = "{{literal:"
	markEnd        = "}}"
)

// values are what must not appear in a recording, by placeholder: what the guest holds, a
// handle or the value itself, and all spellings of the value. It is safe for concurrent
// use.
//
// Invariant: placeholders depend only on the order of add, so that they are the same in a
// replay.
type values struct {
	mu         sync.Mutex // guards what follows
	guestForms map[string]string
	forms      []echo // spellings and their placeholders, longest first
}

// The shortest spellings to look for, of the value itself and of its encodings, because
// short encodings would occur everywhere.
const (
	shortestValue    = 4
	shortestEncoding = 7
)

func newValues() *values {
	v := &values{guestForms: map[string]string{}}
	for _, m := range []string{secretMark, credentialMark, literalMark} {
		v.spell(m, literalMark+markEnd, false)
	}
	return v
}

// AddSecret adds a value of the guest: held is what the guest holds, value what it stands for.
func (v *values) AddSecret(field, held, value string, encodings [][]byte) {
	name := plainName(field)
	v.mu.Lock()
	defer v.mu.Unlock()
	for n := 2; v.guestForms[secretMark+name+markEnd] != ""; n++ {
		name = plainName(field) + "#" + strconv.Itoa(n)
	}
	v.add(secretMark+name+markEnd, held, value, encodings)
}

// AddSpellings adds spellings of what the guest holds as held.
func (v *values) AddSpellings(held string, encodings [][]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for mark, h := range v.guestForms {
		if h != held {
			continue
		}
		for _, text := range encodings {
			v.spell(string(text), mark, false)
		}
		return
	}
}

// addCredential adds a credential that a request or an answer contained.
func (v *values) addCredential(n int, value string, encodings [][]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(credentialMark+strconv.Itoa(n)+markEnd, value, value, encodings)
}

// add adds a value. The caller holds mu.
func (v *values) add(mark, held, value string, encodings [][]byte) {
	v.guestForms[mark] = held
	for _, text := range append([][]byte{[]byte(held), []byte(value)}, encodings...) {
		switch exact := isExact(value, text); {
		case len(text) < shortestValue, !exact && len(text) < shortestEncoding:
		case string(text) == held:
			v.spell(held, mark, false)
		default:
			v.spell(string(text), mark, !exact && !isHex(value, text) && base64Length(text) == len(text))
		}
	}
}

func (v *values) spell(text, mark string, loose bool) {
	v.forms = withEcho(v.forms, echo{[]byte(text), []byte(mark), loose})
}

// isExact reports whether text is the value itself, apart from escapes.
func isExact(value string, text []byte) bool {
	quoted := strictjson.AppendQuote(nil, value)
	return slices.Contains([]string{value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value),
		url.PathEscape(value)}, string(text))
}

func isHex(value string, text []byte) bool {
	return strings.EqualFold(hex.EncodeToString([]byte(value)), string(text))
}

// plainName returns a field's name in a form that is valid in a placeholder.
func plainName(field string) string {
	return abi.Cut(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '_'
	}, field), 64)
}

// hide replaces values in a text with placeholders. found, which may be nil, is called with
// each placeholder except literals, and its offset.
func (v *values) hide(text []byte, found func(mark string, at int)) []byte {
	v.mu.Lock()
	forms := v.forms
	v.mu.Unlock()
	next := unknown(forms)
	var out []byte
	for pos := 0; ; {
		at, which := nextEcho(text, forms, next, pos)
		if which < 0 {
			return append(out, text[pos:]...)
		}
		from, to := at, at+len(forms[which].form)
		literal := string(forms[which].handle) == literalMark+markEnd
		switch {
		case literal:
			to = at + len("{{") // a value may follow
		case forms[which].loose:
			if from > pos && text[from-1] != '=' && isBase64(text[from-1]) {
				from--
			}
			to += base64Length(text[to:])
		}
		out = append(append(out, text[pos:from]...), forms[which].handle...)
		pos = to
		if found != nil && !literal {
			found(string(forms[which].handle), at)
		}
	}
}

// base64Length returns the length of the base64 text at the beginning, with escapes as in
// URLs.
func base64Length(text []byte) (n int) {
	for n < len(text) {
		switch {
		case isBase64(text[n]):
			n++
		case len(text)-n >= 3 && slices.Contains([]string{"%2B", "%2F", "%3D"}, strings.ToUpper(string(text[n:n+3]))):
			n += 3
		default:
			return n
		}
	}
	return n
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/-_=", c) >= 0
}

// maxShown is the length beyond which a text with placeholders is not expanded.
const maxShown = 2 * MaxRecording

// show replaces placeholders with what the guest holds. Unknown placeholders stay.
func (v *values) show(text []byte) []byte {
	if !bytes.Contains(text, []byte("{{")) {
		return text
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []byte
	for {
		at := bytes.Index(text, []byte("{{"))
		if at < 0 {
			return append(out, text...)
		}
		out, text = append(out, text[:at]...), text[at:]
		var mark []byte
		if end := bytes.Index(text[:min(len(text), 100)], []byte(markEnd)); end > 0 {
			mark = text[:end+len(markEnd)]
		}
		held, known := v.guestForms[string(mark)]
		switch {
		case known && len(out) < maxShown: // a long secret may occur often
			out = append(out, held...)
		case string(mark) == literalMark+markEnd:
			out = append(out, "{{"...)
		default:
			mark = text[:1]
			out = append(out, mark...)
		}
		text = text[len(mark):]
	}
}

// standIn returns the value that a replay uses for a secret or a credential.
func standIn(seed [32]byte, kind, name string) string {
	sum := hashOf(seed[:], []byte(kind), []byte(name))
	return fmt.Sprintf("sluice-%s-%s", kind, hex.EncodeToString(sum[:10]))
}
