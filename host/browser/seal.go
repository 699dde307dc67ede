package browser

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/egress"
)

// placementFill is the placement of values that may be typed into pages.
const placementFill = "browser_fill"

// placementLogin is the placement of HTTP authentication, which the browser sends to all of an
// origin.
const placementLogin = "header:authorization"

// seals holds the sealed values of one run, where each may be typed, and how to find each in a
// page's texts. It implements engine.Secrets and is safe for concurrent use.
type seals struct {
	used func(field, origin, placement string) // called for each use

	// submitted is set once a stored secret may have reached a server.
	submitted atomic.Bool

	mu    sync.Mutex // guards what follows
	by    map[string]sealed
	masks masking
	refs  map[page.Ref]bool // fields that were filled
}

// A sealed is a sealed value with the canonical origins where it may be used.
type sealed struct {
	field, value string
	known        []string // origins approved for another placement
	to           []string
	login        []string // origins approved for HTTP authentication
}

func newSeals(used func(field, origin, placement string)) *seals {
	return &seals{used: used, by: map[string]sealed{}, refs: map[page.Ref]bool{}}
}

func (s *seals) add(field, handle, value string, forms [][]byte, to []abi.Destination) {
	v := sealed{field: field, value: value}
	for _, d := range to {
		origin, err := egress.SealedOrigin(d.Origin)
		if err == nil && d.PathPrefix == "" &&
			slices.ContainsFunc(d.Placements, func(p string) bool { return strings.EqualFold(p, placementLogin) }) {
			v.login = append(v.login, origin)
		}
		switch {
		case err != nil: // not a usable origin
		case slices.ContainsFunc(d.Placements, func(p string) bool { return strings.EqualFold(p, placementFill) }):
			v.to = append(v.to, origin)
		default:
			v.known = append(v.known, origin)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[handle] = v
	s.masks = newMasking(withMasks(s.masks.list, handle, value, forms))
}

// spellings returns the spellings to search for in files: those of values long enough to be found
// within text.
func (s *seals) spellings() (list []egress.Spelling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.masks.list {
		if !m.whole {
			list = append(list, egress.Spelling{Form: m.form, Handle: m.handle})
		}
	}
	return list
}

// clear forgets all values.
func (s *seals) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.by)
	s.masks = masking{}
}

var _ engine.Secrets = (*seals)(nil)

// Value returns what a handle stands for, if it may be typed into the field: both origins are
// approved and the field is of a fitting kind.
func (s *seals) Value(handle, pageOrigin, frameOrigin string, field page.Node) (string, *engine.Refusal) {
	s.mu.Lock()
	v, known := s.by[handle]
	s.mu.Unlock()
	if !known {
		return "", deniedSeal("sealed_handle_unknown", "a handle is not one of this run")
	}
	for _, origin := range []string{pageOrigin, frameOrigin} {
		canonical, err := egress.SealedOrigin(origin)
		switch {
		case err == nil && slices.Contains(v.to, canonical):
		case err == nil && slices.Contains(v.known, canonical):
			return "", deniedSeal("sealed_placement_denied", "the secret "+v.field+" may not be typed there")
		default:
			return "", deniedSeal("sealed_destination_denied",
				"the secret "+v.field+" may not be typed into a page or frame of that origin")
		}
	}
	if !fits(v.field, field) {
		return "", deniedSeal("sealed_placement_denied", "the field is none that the secret "+v.field+" may be typed into")
	}
	s.mu.Lock()
	s.refs[field.Ref] = true
	s.mu.Unlock()
	origin, _ := egress.SealedOrigin(frameOrigin)
	s.used(v.field, origin, placementFill)
	return v.value, nil
}

// Login returns what handles stand for, if each may be sent to the whole origin for HTTP
// authentication.
func (s *seals) Login(origin string, handles ...string) ([]string, *engine.Refusal) {
	canonical, err := egress.SealedOrigin(origin)
	var fields, values []string
	for _, h := range handles {
		s.mu.Lock()
		v, known := s.by[h]
		s.mu.Unlock()
		switch {
		case !known:
			return nil, deniedSeal("sealed_handle_unknown", "a handle is not one of this run")
		case err == nil && slices.Contains(v.login, canonical):
			fields, values = append(fields, v.field), append(values, v.value)
		case err == nil && (slices.Contains(v.known, canonical) || slices.Contains(v.to, canonical)):
			return nil, deniedSeal("sealed_placement_denied",
				"the secret "+v.field+" may not be sent there as a login by HTTP: that is "+placementLogin+", of the whole origin")
		default:
			return nil, deniedSeal("sealed_destination_denied", "the secret "+v.field+" may not be sent to that origin")
		}
	}
	for _, field := range fields {
		s.used(field, canonical, placementLogin)
	}
	return values, nil
}

// filled returns the fields that values were typed into.
func (s *seals) filled() []page.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.refs))
}

func deniedSeal(code, message string) *engine.Refusal {
	return &engine.Refusal{Code: code, Message: message, Verb: engine.Type}
}

// purposes maps parts of secret names to the autocomplete purposes into which such a secret may be
// typed. A secret with another name fits all of them.
var purposes = []struct {
	names []string
	of    []string
}{
	{[]string{"otp", "2fa", "mfa", "totp", "code"}, []string{"one-time-code"}},
	{[]string{"pass", "pwd", "secret", "pin", "token"}, []string{"current-password", "new-password"}},
	{[]string{"mail"}, []string{"email", "username"}},
	{[]string{"user", "login", "account"}, []string{"username", "email", "tel"}},
	{[]string{"phone", "mobile", "tel"}, []string{"tel", "username"}},
}

var allPurposes = []string{"username", "email", "tel", "one-time-code", "current-password", "new-password"}

// fits reports whether a secret of that name may be typed into a field: a password field, or one
// whose type or autocomplete purpose fits.
func fits(name string, field page.Node) bool {
	if field.Secret {
		return true
	}
	wanted := allPurposes
	name = strings.ToLower(name)
	for _, p := range purposes {
		if slices.ContainsFunc(p.names, func(part string) bool { return strings.Contains(name, part) }) {
			wanted = p.of
			break
		}
	}
	tokens := append(strings.Fields(strings.ToLower(field.Autocomplete)), strings.ToLower(field.Type))
	return slices.ContainsFunc(tokens, func(t string) bool { return slices.Contains(wanted, t) })
}

// Submitted records that a secret is sent to a server. From now on no failure of the session is
// retried, so no password is sent twice.
func (s *seals) Submitted() { s.submitted.Store(true) }

// Spent reports whether a stored secret may have reached a server while establishing a session that
// failed. Another attempt would send it again.
func (s *Session) Spent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seals.submitted.Load() && s.establishment.unsettled
}
