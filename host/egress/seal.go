package egress

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"mime"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// handlePrefix is the prefix of all handles; 26 letters of base32 follow.
const (
	handlePrefix = "sluice-sealed-v1-"
	handleBytes  = len(handlePrefix) + 26
)

// maxSealedBody bounds the bodies in which handles are replaced.
const maxSealedBody = 1 * abi.MiB

// Seals are the sealed values of one run: the values of the guest's handles, and where each
// may be sent. They are safe for concurrent use.
type Seals struct {
	mu       sync.Mutex // guards the fields below
	byHandle map[string]seal
	all      []echo
	plain    []echo // values that the guest knows in plain text
	used     map[use]bool
	newUses  []use

	tokens *tokens // nil if none are declared
}

// A seal is the value of one handle.
type seal struct {
	field        string
	value        string
	source       ValueSource // source of the value; nil if the value is fixed
	destinations []destination
}

// ValueSource returns the current value of a handle, different from refused, which a server
// rejected, if possible; refused is "" for none. An *Error that it returns is shown to the
// guest.
type ValueSource = func(ctx context.Context, refused string) (string, error)

// A destination is a destination with a canonical origin.
type destination struct {
	origin     string
	prefix     string
	placements []string
}

// A use is the sending of a value.
type use struct{ field, origin, placement string }

// A sentValue came from a Current, which may have a newer one.
type sentValue struct {
	source ValueSource
	value  string
}

// Add registers the value of a handle. forms are the encodings in which an answer may
// contain the value. A destination with an invalid origin permits nothing.
func (s *Seals) Add(field, handle, value string, forms [][]byte, to []abi.Destination) {
	s.add(seal{field: field, value: value}, handle, to)
	s.Echo(handle, forms)
}

// AddSource registers a handle whose value from returns; its values are announced with
// Echo.
func (s *Seals) AddSource(field, handle string, from ValueSource, to []abi.Destination) {
	s.add(seal{field: field, source: from}, handle, to)
}

func (s *Seals) add(sealed seal, handle string, to []abi.Destination) {
	for _, d := range to {
		if origin, err := SealedOrigin(d.Origin); err == nil {
			sealed.destinations = append(sealed.destinations, destination{origin, d.PathPrefix, d.Placements})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHandle == nil {
		s.byHandle, s.used = map[string]seal{}, map[use]bool{}
	}
	s.byHandle[handle] = sealed
}

// Echo adds encodings in which an answer may contain the value of a handle, or a value that
// only the host knows.
func (s *Seals) Echo(handle string, forms [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.echo(handle, forms)
}

// Protect keeps a value that the guest knows in plain text out of audit entries. It ignores
// short forms, which would occur everywhere.
func (s *Seals) Protect(forms [][]byte) {
	forms = slices.DeleteFunc(slices.Clone(forms), func(f []byte) bool { return len(f) < 8 })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plain = withForms(s.plain, redacted, forms)
}

// SealedOrigin returns the canonical form of an origin to which sealed values may be sent:
// https, or http to this machine.
func SealedOrigin(text string) (string, error) {
	t, err := parseTarget(text, nil)
	switch {
	case err != nil:
		return "", err
	case t.url.RawQuery != "" || strings.Trim(t.url.Path, "/") != "":
		return "", Malformed("an origin has neither path nor query")
	case t.scheme == "http" && !isLoopback(t.host):
		return "", denyf("scheme", "a secret goes over https, or over http to this machine itself")
	}
	return t.origin(), nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || host == "localhost"
}

// Uses yields each place to which values have been sent since the last call.
func (s *Seals) Uses(yield func(field, origin, placement string)) {
	s.mu.Lock()
	news := s.newUses
	s.newUses = nil
	s.mu.Unlock()
	for _, u := range news {
		yield(u.field, u.origin, u.placement)
	}
}

// note records the uses of a request before it is sent.
func (s *Seals) note(uses []use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range uses {
		if !s.used[u] {
			s.used[u] = true
			s.newUses = append(s.newUses, u)
		}
	}
}

// find returns the value of a handle, if it is permitted at this placement in a request to
// t.
func (s *Seals) find(handle string, t target, placement string) (seal, error) {
	s.mu.Lock()
	sealed, known := s.byHandle[handle]
	s.mu.Unlock()
	if !known {
		return seal{}, sealedDenial("sealed_handle_unknown", "a handle is not one of this run")
	}
	near := false
	for _, p := range sealed.destinations {
		if p.origin != t.origin() || !isBelow(t.url, p.prefix) {
			continue
		}
		near = true
		if slices.ContainsFunc(p.placements, func(name string) bool { return strings.EqualFold(name, placement) }) {
			return sealed, nil
		}
	}
	if near {
		return seal{}, sealedDenial("sealed_placement_denied", "the secret %s may not be put into %s at %s", sealed.field,
			placement, t.origin())
	}
	return seal{}, sealedDenial("sealed_destination_denied", "the secret %s may not be sent to %s%s", sealed.field,
		t.origin(), auditPath(t.url.EscapedPath()))
}

func sealedDenial(code, format string, args ...any) *Error {
	e := denyf("secret", format, args...)
	e.Code = code
	return e
}

// isBelow reports whether a path stays below a prefix for every server. A path with dots or
// escapes that could lead elsewhere is only below "".
func isBelow(u *url.URL, prefix string) bool {
	if prefix == "" {
		return true
	}
	p := cmp.Or(u.Path, "/")
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	escaped := strings.ToLower(u.EscapedPath())
	if clean != p || strings.ContainsAny(p, "\\;") || strings.Contains(escaped, "%2f") ||
		strings.Contains(escaped, "%2e") || strings.Contains(escaped, "%25") {
		return false
	}
	return p == prefix || strings.HasPrefix(p, strings.TrimSuffix(prefix, "/")+"/")
}

// A substitution replaces the handles of one hop.
type substitution struct {
	ctx    context.Context
	seals  *Seals
	target target
	uses   []use
	sent   map[string]sentValue // by handle: a hop uses one value of each
}

// substitute returns a copy of the hop with handles replaced by values, and the substitution that knows
// where. It replaces all handles or none.
func (s *Seals) substitute(ctx context.Context, h hop, t target) (hop, *substitution, error) {
	f := &substitution{ctx: ctx, seals: s, target: t}
	if strings.Contains(t.url.String(), handlePrefix) || hiddenHandle(t.url) {
		return h, f, sealedDenial("sealed_placement_denied", "a URL may not have a handle in it")
	}
	out := hop{method: h.method}
	for _, pair := range h.headers {
		if strings.Contains(pair[0], handlePrefix) {
			return h, f, sealedDenial("sealed_placement_denied", "the name of a header may not have a handle in it")
		}
		v, err := f.header(pair[0], pair[1])
		if err != nil {
			return h, f, err
		}
		out.headers = append(out.headers, [2]string{pair[0], v})
	}
	var err error
	if out.body, err = f.body(h); err != nil {
		return h, f, err
	}
	if len(f.uses) == 0 {
		return h, f, nil
	}
	return out, f, nil
}

// containsValue reports whether a URL contains a sealed value in any spelling.
func (s *Seals) containsValue(u *url.URL) bool {
	echoes := s.echoes()
	query, _ := url.QueryUnescape(u.RawQuery) // if it is Malformed, the raw URL is checked
	for _, text := range []string{u.String(), u.Path, query} {
		if unseal(echoes, text) != text {
			return true
		}
	}
	return slices.ContainsFunc(echoes, func(e echo) bool { // hosts are in lower case
		return len(e.form) >= 8 && strings.Contains(u.Host, strings.ToLower(string(e.form)))
	})
}

// hiddenHandle finds an escaped handle in a URL.
func hiddenHandle(u *url.URL) bool {
	query, err := url.QueryUnescape(u.RawQuery)
	return strings.Contains(u.Path, handlePrefix) || err == nil && strings.Contains(query, handlePrefix)
}

const basicSealed = "Basic-Sealed "

func (f *substitution) header(name, value string) (string, error) {
	placement := "header:" + strings.ToLower(name)
	rest, basic := strings.CutPrefix(value, basicSealed)
	basic = basic && placement == "header:authorization"
	if !basic {
		rest = value
	}
	filled, err := f.replace(rest, placement, func(v string) (string, error) {
		if strings.ContainsAny(v, "\r\n\x00") {
			return "", sealedDenial("sealed_placement_denied", "the secret has characters that a header cannot hold")
		}
		return v, nil
	})
	if err == nil && basic {
		filled = "Basic " + base64.StdEncoding.EncodeToString([]byte(filled))
	}
	return filled, err
}

// body replaces the handles in a body, escaping values for its type.
func (f *substitution) body(h hop) ([]byte, error) {
	if !bytes.Contains(h.body, []byte(handlePrefix)) {
		return h.body, nil
	}
	escape := escaping(h.headers)
	if escape == nil || len(h.body) > maxSealedBody {
		return nil, sealedDenial("sealed_placement_denied", "handles are replaced in bodies of text of at most 1 MiB")
	}
	filled, err := f.replace(string(h.body), "body", func(v string) (string, error) { return escape(v), nil })
	return []byte(filled), err
}

// escaping returns the escaping for a body of the type in headers, or nil if it is not
// text.
func escaping(headers [][2]string) func(string) string {
	var types []string
	for _, pair := range headers {
		if strings.EqualFold(pair[0], "Content-Type") {
			types = append(types, pair[1])
		}
	}
	if len(types) != 1 {
		return nil
	}
	switch kind, _, err := mime.ParseMediaType(types[0]); {
	case err != nil:
		return nil
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return func(v string) string {
			quoted := strictjson.AppendQuote(nil, v)
			return string(quoted[1 : len(quoted)-1])
		}
	case kind == "application/x-www-form-urlencoded":
		return url.QueryEscape
	case isText(kind):
		return func(v string) string { return v }
	}
	return nil
}

func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+json") ||
		slices.Contains([]string{
			"application/json", "application/xml", "application/javascript", "application/x-www-form-urlencoded",
			"application/x-ndjson", "application/graphql",
		}, kind)
}

// replace replaces the handles in a text.
func (f *substitution) replace(text, placement string, write func(string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, handlePrefix)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if len(rest) < handleBytes-len(handlePrefix) {
			return "", sealedDenial("sealed_handle_unknown", "a handle is cut short")
		}
		handle := handlePrefix + rest[:handleBytes-len(handlePrefix)]
		sealed, err := f.seals.find(handle, f.target, placement)
		if err != nil {
			return "", err
		}
		value, err := f.value(handle, sealed)
		if err == nil {
			value, err = write(value)
		}
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		f.uses = append(f.uses, use{sealed.field, f.target.origin(), placement})
		text = rest[handleBytes-len(handlePrefix):]
	}
}

// value returns the value of a seal for this hop.
func (f *substitution) value(handle string, s seal) (string, error) {
	if s.source == nil {
		return s.value, nil
	}
	if put, ok := f.sent[handle]; ok {
		return put.value, nil
	}
	v, err := s.source(f.ctx, "")
	if err != nil {
		return "", err
	}
	if f.sent == nil {
		f.sent = map[string]sentValue{}
	}
	f.sent[handle] = sentValue{s.source, v}
	return v, nil
}

// renew replaces the values that a server refused, if there are newer ones, and reports
// whether any is new. The next hop checks them again.
func (f *substitution) renew(ctx context.Context) (bool, error) {
	newer := false
	for _, s := range f.sent {
		v, err := s.source(ctx, s.value)
		if err != nil {
			return false, err
		}
		newer = newer || v != s.value
	}
	return newer, nil
}
