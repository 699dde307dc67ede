package egress

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Mint makes the handle for the nth value of a field, counting from 1, and returns the
// encodings in which answers may contain the value. It is called from any goroutine, one
// call at a time, before the guest sees the answer.
type Mint = func(field string, n int, value string) (handle string, forms [][]byte)

// Bounds of tokens: values of one field in a run, bytes of a value, and bytes of a body
// that may contain one.
const (
	tokenValues = 16
	tokenBytes  = 8 * abi.KiB
	tokenBody   = 1 * abi.MiB
)

// sealedCookie is the header with the handle of a cookie. The host keeps the cookie itself.
const sealedCookie = "Sluice-Sealed-Cookie"

// tokens are the places of a run's session tokens, and the values found there.
type tokens struct {
	places []abi.SessionToken
	mint   Mint
	issued map[issue]string // handles
	count  map[string]int   // by field
}

// An issue is a value of a field that came from an origin.
type issue struct{ field, origin, value string }

// StandInTokens gives the guest of a replay the handles of the recorded run, whose tokens
// are placeholders in the recording.
func (r *Replayer) StandInTokens(places []abi.SessionToken, mint Mint) {
	for _, field := range fieldsOf(places) {
		for n := 1; n <= tokenValues; n++ {
			handle, _ := mint(field, n, "")
			r.values.AddSecret(field, handle, handle, nil)
		}
	}
}

func fieldsOf(places []abi.SessionToken) (fields []string) {
	for _, p := range places {
		if !slices.Contains(fields, p.Name) {
			fields = append(fields, p.Name)
		}
	}
	return fields
}

// SealTokens makes values at these places of answers handles. It is called before the first request.
func (s *Seals) SealTokens(places []abi.SessionToken, mint Mint) {
	places = slices.Clone(places)
	for i := range places {
		origin, err := parseTarget(places[i].Origin, nil)
		places[i].Origin = ""
		if err == nil { // an invalid place applies to every server
			places[i].Origin = origin.origin()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = &tokens{places, mint, map[issue]string{}, map[string]int{}}
}

// placesIn returns the places in an answer to a request for t: those in bodies, or the
// others.
func (s *Seals) placesIn(t target, body bool) (out []abi.SessionToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == nil {
		return nil
	}
	for _, p := range s.tokens.places {
		if (p.Pointer != "") == body && (p.Origin == "" || p.Origin == t.origin()) && mayBeBelow(t.url, p.PathPrefix) {
			out = append(out, p)
		}
	}
	return out
}

// mayBeBelow reports whether a server may interpret a path as one below a prefix; a path with
// dots or escapes may be any.
func mayBeBelow(u *url.URL, prefix string) bool {
	p := cmp.Or(u.Path, "/")
	escaped := strings.ToLower(u.EscapedPath())
	if clean := path.Clean(p); strings.TrimSuffix(p, "/") != strings.TrimSuffix(clean, "/") ||
		strings.ContainsAny(p, "\\;") ||
		strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%2e") || strings.Contains(escaped, "%25") {
		return true
	}
	p, prefix = strings.ToLower(p)+"/", strings.ToLower(strings.TrimSuffix(prefix, "/"))+"/"
	return strings.HasPrefix(p, prefix)
}

// issue returns the handle for a value from an origin, to which alone it may be sent.
func (s *Seals) issue(p abi.SessionToken, t target, value string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := issue{p.Name, t.origin(), value}
	if handle := s.tokens.issued[k]; handle != "" {
		return handle, nil
	}
	if len(value) > tokenBytes || s.tokens.count[p.Name] >= tokenValues {
		return "", errTokenWithheld("a run may get %d values of %s, of %d bytes", tokenValues, p.Name, tokenBytes)
	}
	s.tokens.count[p.Name]++
	handle, forms := s.tokens.mint(p.Name, s.tokens.count[p.Name], value)
	s.tokens.issued[k] = handle
	sealed := seal{field: p.Name, value: value}
	if origin, err := SealedOrigin(t.origin()); err == nil {
		sealed.destinations = []destination{{origin, "", p.Placements}}
	}
	if s.byHandle == nil {
		s.byHandle, s.used = map[string]seal{}, map[use]bool{}
	}
	s.byHandle[handle] = sealed
	if len(value) >= shortestCredential { // a shorter one occurs everywhere
		s.echo(handle, forms)
	}
	return handle, nil
}

func errTokenWithheld(format string, args ...any) *Error {
	e := denyf("answer", "the answer is withheld: "+format, args...)
	e.Code = "answer_withheld"
	return e
}

// sealHeaders replaces tokens in the headers of an answer with handles. It is called for
// every hop.
func (s *Seals) sealHeaders(t target, r *http.Response) error {
	r.Header.Del(sealedCookie) // the host's
	for _, p := range s.placesIn(t, false) {
		for i, value := range r.Header.Values(p.Header) {
			if value == "" {
				continue
			}
			handle, err := s.issue(p, t, value)
			if err != nil {
				return err
			}
			if _, bare, ok := strings.Cut(value, " "); ok { // it may occur without its scheme
				if _, err := s.issue(p, t, strings.TrimSpace(bare)); err != nil {
					return err
				}
			}
			r.Header.Values(p.Header)[i] = handle
		}
		for _, cookie := range r.Cookies() {
			if p.Cookie == "" || cookie.Name != p.Cookie || cookie.Value == "" {
				continue
			}
			handle, err := s.issue(p, t, cookie.Value)
			if err != nil {
				return err
			}
			r.Header.Add(sealedCookie, cookie.Name+"="+handle)
		}
	}
	return nil
}

// sealBody reads a whole body that may contain tokens, and replaces them with handles. A
// body that cannot be checked is withheld: the guest gets an error.
func (s *Seals) sealBody(t target, status int, src io.Reader) *bufferedBody {
	places := s.placesIn(t, true)
	body, err := io.ReadAll(io.LimitReader(src, tokenBody+1))
	if err == nil && len(body) > tokenBody {
		err = errTokenWithheld("it may have a session token, and more than %d bytes", tokenBody)
	}
	if err == nil && len(bytes.TrimSpace(body)) > 0 {
		body, err = s.sealJSON(places, t, status, body)
	}
	if err != nil {
		return newBufferedBody(nil, AsError(err))
	}
	return newBufferedBody(body, nil)
}

// sealJSON replaces the values at the places, and all their other occurrences.
func (s *Seals) sealJSON(places []abi.SessionToken, t target, status int, body []byte) ([]byte, error) {
	root, err := strictjson.Parse(body, strictjson.ParseOptions{AnyKind: true})
	if err != nil {
		return nil, errTokenWithheld("it may have a session token, and is no JSON in which one could be found")
	}
	type spot struct {
		from, to int
		handle   string
	}
	var spots []spot
	for _, p := range places {
		v, found := atPointer(root, p.Pointer)
		if !found || v.Absent() {
			if status >= 200 && status < 300 {
				return nil, errTokenWithheld("it has no %s at %s", p.Name, p.Pointer)
			}
			continue // of a failed login
		}
		value, isText := v.Text()
		switch {
		case v.Is(strictjson.KindNumber):
			value = string(v.Raw)
		case !isText:
			return nil, errTokenWithheld("what it has at %s is no text", p.Pointer)
		}
		if value == "" {
			continue
		}
		handle, err := s.issue(p, t, value)
		if err != nil {
			return nil, err
		}
		from := 0
		for &body[from] != &v.Raw[0] { // the value is part of the body
			from++
		}
		if !slices.ContainsFunc(spots, func(x spot) bool { return x.from == from }) {
			spots = append(spots, spot{from, from + len(v.Raw), handle})
		}
	}
	slices.SortFunc(spots, func(a, b spot) int { return b.from - a.from })
	for _, x := range spots {
		body = slices.Concat(body[:x.from], strictjson.AppendQuote(nil, x.handle), body[x.to:])
	}
	return []byte(unseal(s.echoes(), string(body))), nil
}

// atPointer returns the value at a JSON pointer (RFC 6901).
func atPointer(v strictjson.Value, pointer string) (strictjson.Value, bool) {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if v.Is(strictjson.KindArray) {
			n, err := strconv.Atoi(part)
			found := false
			for item := range v.Items() {
				if n--; err == nil && n == -1 {
					v, found = item, true
					break
				}
			}
			if !found {
				return v, false
			}
			continue
		}
		m, ok := v.Member(part)
		if !ok {
			return v, false
		}
		v = m
	}
	return v, true
}

// HasIssued reports whether the guest has a handle for a value that came from a server.
func (s *Seals) HasIssued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens != nil && len(s.tokens.issued) > 0
}
