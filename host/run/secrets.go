package run

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// SecretFields lists the secrets a manifest declares. A manifest without a
// sluice block declares them by setup.credential_capture (R156).
func SecretFields(m *abi.Manifest) []abi.SecretField {
	if m.Sluice != nil {
		return m.Sluice.Secrets
	}
	return slices.DeleteFunc(slices.Clone(m.CaptureFields), func(f abi.SecretField) bool { return !f.Secret })
}

// Sealed reports whether a connector gets a handle for a secret instead of its
// value (R155, R156).
func Sealed(m *abi.Manifest, f abi.SecretField) bool {
	return m.Sluice != nil && f.Delivery != "plain"
}

// deliveredSecrets are what a guest gets of its secrets: handles or values.
type deliveredSecrets struct {
	values map[string]string
	env    []string
}

// deliver decides per declared secret between handle and value (R155, R156)
// and registers both kinds with the canary (R165).
func (r *run) deliver() {
	p := r.plan
	for _, f := range SecretFields(p.manifest) {
		value, ok := p.Secrets[f.Name]
		switch {
		case f.OAuth != nil:
			value, ok = r.sealToken(f)
		case ok && slices.Contains(p.manifest.Sluice.ClientSecrets(), f.Name):
			r.seal(f.Name, value, nil) // the host uses it, and nobody gets its handle
			ok = false
		}
		if !ok {
			continue
		}
		switch {
		case f.OAuth != nil: // sealed already
		case Sealed(p.manifest, f):
			value = r.seal(f.Name, value, slices.Concat(f.Destinations, p.Connection.Approved.Destinations[f.Name]))
		default:
			r.protect(f.Name, value)
		}
		if p.secrets.values == nil {
			p.secrets.values = map[string]string{}
		}
		p.secrets.values[f.Name] = value
		for _, name := range f.Env {
			p.secrets.env = append(p.secrets.env, name+"="+value)
		}
	}
	r.sealSessions()
}

// protect remembers a value that the guest gets in plain.
func (r *run) protect(field, value string) {
	r.canary.protect(value)
	if n := r.deps.Network; n != nil {
		n.Protect(field, value, Forms(value))
	}
}

// seal returns a new handle for a value, which network and browser put where it
// may go (§18.3).
func (r *run) seal(field, value string, to []abi.Destination) string {
	r.canary.protect(value)
	r.canary.protectWord(value)
	handle := newHandle(r.deps.Handles)
	if n := r.deps.Network; n != nil {
		n.Seal(field, handle, value, Forms(value), to)
	}
	if b := r.browser.open(); b != nil {
		b.Seal(field, handle, value, Forms(value), to)
	}
	return handle
}

// shortest is what R167 and R163 look for: shorter values would be found in
// everything.
const shortest = 4

// Forms are the encodings in which a value is looked for outside of records,
// once each.
func Forms(value string) (out [][]byte) {
	for _, f := range append(forms(value), spellings(value)...) {
		if len(f) >= shortest && !slices.ContainsFunc(out, func(o []byte) bool { return bytes.Equal(o, f) }) {
			out = append(out, f)
		}
	}
	return out
}

// sealedUses reports where values were sent for the first time (R164).
func (r *run) sealedUses() {
	r.deps.Network.Uses(func(field, origin, placement string) {
		e := r.event("run.sealed_value_used", "succeeded", data{"field": field, "origin": origin, "placement": placement})
		r.submit(&store.Commit{Events: []store.Event{e}}, nil)
	})
}

// environment is R33: TZ and the names the manifest declares, nothing else.
func (p *Plan) environment() []string {
	env := append([]string{"TZ=UTC"}, p.secrets.env...)
	if p.manifest.Sluice == nil || p.manifest.Sluice.Settings == nil {
		return env
	}
	config, err := strictjson.Parse(p.config, strictjson.ParseOptions{})
	if err != nil {
		return env
	}
	for _, s := range p.manifest.Sluice.Settings.Properties {
		v, _ := config.Member(s.Name)
		if v.Absent() {
			continue
		}
		text, ok := v.Text()
		if !ok {
			text = string(v.Raw)
		}
		if strings.IndexByte(text, 0) >= 0 {
			continue
		}
		for _, name := range s.Env {
			env = append(env, name+"="+text)
		}
	}
	return env
}

// newHandle makes a handle of R158: 128 random bits, no padding.
func newHandle(random io.Reader) string {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		panic("no random bytes: " + err.Error()) // neither source of them fails
	}
	return handleOf(b)
}

// handleOf is a handle with these bits.
func handleOf(b [16]byte) string {
	return "sluice-sealed-v1-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// A canary finds protected values in what a guest emits (R165 to R167, S93).
// Without protected values it costs one comparison.
type canary struct {
	off     bool     // leak_canary: off; redaction goes on (R168)
	within  [][]byte // forms of values of 8 bytes or more, found anywhere
	search  *search  // for them; nil for none
	whole   []string // values of 4 to 7 bytes, found as a whole string only
	words   []string // those of them that texts are searched for as a word: answers and sealed values
	longest int
	Hits    int64 // redactions so far
}

// protectWord has texts searched for a short value that is protected: a code that
// the owner typed is told nowhere, while a number that is a stored secret by chance stays.
func (c *canary) protectWord(value string) {
	if len(value) >= 4 && len(value) < 8 && !slices.Contains(c.words, value) {
		c.words = append(c.words, value)
	}
}

// protect remembers a value until the run ends.
func (c *canary) protect(value string) {
	switch {
	case len(value) >= 8:
		for _, form := range forms(value) {
			if len(form) >= 8 && !slices.ContainsFunc(c.within, func(o []byte) bool { return bytes.Equal(o, form) }) {
				c.within = append(c.within, form)
				c.longest = max(c.longest, len(form))
			}
		}
		c.search = newSearch(c.within)
	case len(value) >= 4:
		if !slices.Contains(c.whole, value) {
			c.whole = append(c.whole, value)
		}
	}
}

// forms lists the encodings that are searched for: raw, JSON, percent, hex and
// base64 in its three alignments.
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
			// Characters that also hold bits of the neighbours do not count.
			from, to := []int{0, 2, 3}[shift], len(e)
			if len(padded)%3 != 0 {
				to--
			}
			out = append(out, []byte(e[from:to]))
		}
	}
	return out
}

// armed reports whether there is anything to look for.
func (c *canary) armed() bool { return len(c.within) > 0 || len(c.whole) > 0 }

// leaks reports whether JSON text contains a protected value (R167).
func (c *canary) leaks(raw []byte) bool {
	if c.off || !c.armed() {
		return false
	}
	return c.find(raw)
}

// leaksText is leaks for a text.
func (c *canary) leaksText(text []byte) bool {
	return !c.off && c.armed() && c.find(strictjson.AppendQuote(nil, text))
}

// find looks at raw, which is JSON, as it is spelled, and at its strings as
// they are meant, since an escape hides a value from the first look.
func (c *canary) find(raw []byte) bool {
	if c.spelled(raw) {
		return true
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	for token := range texts(raw) {
		if c.meant(strictjson.String(token)) {
			return true
		}
	}
	return false
}

func (c *canary) spelled(raw []byte) bool {
	if c.search != nil && c.search.in(raw) {
		return true
	}
	for _, w := range c.whole {
		if bytes.Contains(raw, strictjson.AppendQuote(nil, w)) {
			return true
		}
	}
	return false
}

func (c *canary) meant(text string) bool {
	return c.search != nil && c.search.in([]byte(text)) || slices.Contains(c.whole, text)
}

// locate returns the JSON pointer of the first member that leaks, "" when only
// the whole does. It stops above a name that is a protected value itself.
func (c *canary) locate(v strictjson.Value) string {
	i := 0
	for item := range v.Items() {
		if c.find(item.Raw) {
			return "/" + itoa(i) + c.locate(item)
		}
		i++
	}
	for name, m := range v.Members() {
		if c.find(strictjson.AppendQuote(nil, name)) {
			return ""
		}
		if c.find(m.Raw) {
			return "/" + pointer.Replace(abi.Cut(abi.Clean(name), 64)) + c.locate(m)
		}
	}
	return ""
}

// pointer escapes a member name for a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// redact replaces protected values in a text (R166).
func (c *canary) redact(s string) string {
	if !c.armed() {
		return s
	}
	for _, w := range c.within {
		if n := strings.Count(s, string(w)); n > 0 {
			c.Hits += int64(n)
			s = strings.ReplaceAll(s, string(w), "[REDACTED_SECRET]")
		}
	}
	if slices.Contains(c.whole, s) {
		c.Hits++
		return "[REDACTED_SECRET]"
	}
	for _, w := range c.words {
		s = c.redactWord(s, w)
	}
	return s
}

// redactWord replaces a short value where it is a word of its own: a code of six
// digits within a longer number is something else.
func (c *canary) redactWord(s, word string) string {
	var out strings.Builder
	for from := 0; ; {
		at := strings.Index(s[from:], word)
		if at < 0 {
			return out.String() + s[from:]
		}
		end := from + at + len(word)
		out.WriteString(s[from : from+at])
		if isInWord(s, from+at, end) {
			out.WriteString(word)
		} else {
			c.Hits++
			out.WriteString("[REDACTED_SECRET]")
		}
		from = end
	}
}

// redactJSON redacts every string of a JSON value, names included. A value that
// hides elsewhere, such as in a number, takes the whole with it.
func (c *canary) redactJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !c.armed() || !c.find(raw) {
		return raw
	}
	out := make(json.RawMessage, 0, len(raw))
	at := 0
	for token, from := range texts(raw) {
		if text := strictjson.String(token); c.meant(text) {
			out = append(out, raw[at:from]...)
			out = strictjson.AppendQuote(out, c.redact(text))
			at = from + len(token)
		}
	}
	if out = append(out, raw[at:]...); c.find(out) {
		c.Hits++
		return json.RawMessage(`"[REDACTED_SECRET]"`)
	}
	return out
}

// texts yields the strings of a JSON text, as spelled, and where they begin.
func texts(raw []byte) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		for i := 0; i < len(raw); i++ {
			if raw[i] != '"' {
				continue
			}
			from := i
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			if !yield(raw[from:i+1], from) {
				return
			}
		}
	}
}

// atOwners is a destination of an answer where it really is: one that the manifest
// leaves to the owner is at each origin that they named for a secret of this
// connection (R157), with the placements that the manifest asks for.
func (p *Plan) atOwners(d abi.Destination) (out []abi.Destination) {
	if d.Origin != abi.OwnerOrigin {
		return []abi.Destination{d}
	}
	for _, named := range p.Connection.Approved.Destinations {
		for _, to := range named {
			if !slices.ContainsFunc(out, func(o abi.Destination) bool { return o.Origin == to.Origin }) {
				out = append(out, abi.Destination{Origin: to.Origin, PathPrefix: d.PathPrefix, Placements: d.Placements})
			}
		}
	}
	return out
}
