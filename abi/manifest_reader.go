package abi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A ManifestError says which member of a manifest is wrong and what was expected. It is
// reported as connector_invalid.
type ManifestError struct {
	Path string // JSON pointer
	Rule string // stable name; dependency_… for rules about several streams
	Want string
}

func (e *ManifestError) Error() string {
	path := e.Path
	if path == "" {
		path = "/"
	}
	return fmt.Sprintf("manifest member %s: %s (%s)", path, e.Want, e.Rule)
}

// ReadManifest reads and validates a manifest. Unknown members are kept
// in Raw and otherwise ignored. The error is a *ManifestError.
func ReadManifest(src []byte) (*Manifest, error) {
	if len(src) > MaxManifestBytes {
		return nil, &ManifestError{"", "manifest_too_large",
			fmt.Sprintf("at most %d bytes, have %d", MaxManifestBytes, len(src))}
	}
	root, err := strictjson.Parse(src, strictjson.ParseOptions{})
	if err != nil {
		return nil, &ManifestError{"", "manifest_json", "one JSON object: " + err.Error()}
	}
	r := &manifestReader{}
	m := r.manifest(root)
	m.Raw = json.RawMessage(slices.Clone(src))
	if r.err != nil {
		return nil, r.err
	}
	if err := checkDependencies(m); err != nil {
		return nil, err
	}
	return m, nil
}

// A manifestReader keeps the first error; after it, reads return zero values.
type manifestReader struct{ err *ManifestError }

// An at is a value and its location.
type at struct {
	strictjson.Value
	path string
}

func (a at) member(name string) at {
	v, _ := a.Member(name)
	return at{v, a.path + "/" + pointer(name)}
}

func pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func (r *manifestReader) fail(a at, rule, want string) {
	if r.err == nil {
		r.err = &ManifestError{a.path, rule, want}
	}
}

func (r *manifestReader) text(a at, max int, required bool) string {
	if a.Absent() && !required {
		return ""
	}
	s, ok := a.Text()
	switch {
	case !ok || Blank(s):
		r.fail(a, "text_expected", "a text that is not blank")
	case len(s) > max:
		r.fail(a, "text_too_long", fmt.Sprintf("at most %d bytes", max))
	case Clean(s) != s:
		r.fail(a, "text_control", "no control characters")
	}
	return s
}

func (r *manifestReader) flag(a at) bool {
	b, ok := a.Bool()
	if !a.Absent() && !ok {
		r.fail(a, "flag_expected", "true or false")
	}
	return b
}

func (r *manifestReader) oneOf(a at, required bool, allowed ...string) string {
	if a.Absent() && !required {
		return ""
	}
	s, ok := a.Text()
	if !ok || !slices.Contains(allowed, s) {
		r.fail(a, "value_unknown", "one of "+strings.Join(allowed, ", "))
	}
	return s
}

// object requires that a is an object; only an optional one may be absent.
func (r *manifestReader) object(a at, required bool) bool {
	if a.Absent() && !required {
		return false
	}
	if !a.Is(strictjson.KindObject) {
		r.fail(a, "object_expected", "an object")
		return false
	}
	return true
}

// list requires that a is an array, if present, and calls each for its items.
func (r *manifestReader) list(a at, max int, each func(at)) {
	if a.Absent() {
		return
	}
	if !a.Is(strictjson.KindArray) {
		r.fail(a, "array_expected", "an array")
		return
	}
	if n := a.Value.Len(); n > max {
		r.fail(a, "array_too_long", fmt.Sprintf("at most %d items, have %d", max, n))
		return
	}
	i := 0
	for item := range a.Items() {
		each(at{item, fmt.Sprintf("%s/%d", a.path, i)})
		i++
	}
}

func (r *manifestReader) texts(a at, max int) []string {
	var out []string
	r.list(a, max, func(i at) { out = append(out, r.text(i, 256, true)) })
	return out
}

func (r *manifestReader) manifest(root strictjson.Value) *Manifest {
	top := at{root, ""}
	m := &Manifest{byName: map[string]int{}, Bindings: map[string]Binding{}, ReasonMessages: map[string]string{}}
	m.ProtocolVersion = r.oneOf(top.member("protocol_version"), true, "0.1.0")
	m.ConnectorID = r.text(top.member("connector_id"), 512, true)
	if key := top.member("connector_key"); !key.Absent() {
		if m.ConnectorKey = r.text(key, 64, true); !IsSlug(m.ConnectorKey) {
			r.fail(key, "connector_key_invalid", "a slug: ^[a-z0-9][a-z0-9_-]{0,63}$")
		}
	}
	derived := SlugOf(m.ConnectorID)
	switch {
	case m.ConnectorKey == "" && !IsSlug(derived):
		r.fail(top.member("connector_id"), "connector_id_invalid", "a slug, or a URL whose last segment makes one")
	case m.ConnectorKey != "" && m.ConnectorKey != derived:
		r.fail(top.member("connector_key"), "connector_key_mismatch", "the name that connector_id gives: "+derived)
	}
	m.Version = r.text(top.member("version"), 64, true)
	m.DisplayName = r.text(top.member("display_name"), 320, true)
	r.bindings(m, top.member("runtime_requirements"))
	r.capabilities(m, top.member("capabilities"))
	if setup := top.member("setup"); r.object(setup, false) {
		if capture := setup.member("credential_capture"); r.object(capture, false) {
			m.CaptureFields = r.secrets(capture.member("fields"), true)
		}
	}
	if reasons := top.member("reason_display_messages"); r.object(reasons, false) {
		for name, v := range reasons.Members() {
			m.ReasonMessages[name] = r.text(at{v, reasons.path + "/" + pointer(name)}, 500, true)
		}
	}
	r.streams(m, top.member("streams"))
	r.sluice(m, top.member("sluice"))
	return m
}

// bindingReaders read the members of a binding other than "required".
var bindingReaders = map[string]func(r *manifestReader, a at, b *Binding){
	BindingNetwork:    (*manifestReader).network,
	BindingFilesystem: (*manifestReader).filesystem,
	BindingBrowser:    (*manifestReader).browser,
}

func (r *manifestReader) bindings(m *Manifest, req at) {
	if !r.object(req, false) {
		return
	}
	all := req.member("bindings")
	if !r.object(all, false) {
		return
	}
	for name := range all.Members() {
		a := all.member(name)
		if len(name) > 64 || Blank(name) {
			r.fail(a, "binding_name", "a name of at most 64 bytes")
			return
		}
		if !r.object(a, true) {
			return
		}
		b := Binding{Required: r.flag(a.member("required"))}
		if read := bindingReaders[name]; read != nil {
			read(r, a, &b)
		} else {
			b.Members = json.RawMessage(slices.Clone(a.Raw))
		}
		m.Bindings[name] = b
	}
}

func (r *manifestReader) capabilities(m *Manifest, c at) {
	if !r.object(c, false) {
		return
	}
	r.list(c.member("human_interaction"), len(InteractionKinds), func(i at) {
		m.HumanKinds = append(m.HumanKinds, r.oneOf(i, true, InteractionKinds...))
	})
	if p := c.member("refresh_policy"); r.object(p, false) {
		m.RefreshPolicy = json.RawMessage(slices.Clone(p.Raw))
	}
}

// SlugOf derives a connector's name from its id: the last path segment in lower case, with
// other characters replaced by hyphens.
func SlugOf(id string) string {
	id = strings.TrimRight(id, "/")
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '-'
	}, strings.ToLower(id))
}

// IsSlug reports whether s matches ^[a-z0-9][a-z0-9_-]{0,63}$.
func IsSlug(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '_' || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
