package timeline

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/host/run/redact"
)

// members are the members of a JSON object as spelled. Getters return the zero value for a member
// that is missing or of another type.
type members map[string]json.RawMessage

// membersOf parses an object; anything else has no members.
func membersOf(raw []byte) members {
	var m members
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return members{}
	}
	return m
}

func (m members) text(name string) string {
	var s string
	if json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

func (m members) integer(name string) int64 {
	n, _ := m.number(name)
	return n
}

// number returns a 64-bit integer. ok is false for anything else.
func (m members) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(m[name])), 10, 64)
	return n, err == nil
}

func (m members) yes(name string) bool { return string(bytes.TrimSpace(m[name])) == "true" }

// object returns a member that is an object, otherwise nil.
func (m members) object(name string) members {
	raw := bytes.TrimSpace(m[name])
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return membersOf(raw)
}

// raw returns a member that is present and not null.
func (m members) raw(name string) json.RawMessage {
	raw := m[name]
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil
	}
	return slices.Clone(raw)
}

func (m members) texts(name string) []string {
	var out []string
	if json.Unmarshal(m[name], &out) != nil {
		return nil
	}
	return out
}

// fill sets a member that is missing or null.
func (m members) fill(name, value string) {
	if value != "" && m.raw(name) == nil {
		m[name] = quoted(value)
	}
}

// only returns the members that a closed payload may have.
func (m members) only(e Entry) members {
	out := make(members, len(e.Required)+len(e.Optional))
	for _, names := range [][]string{e.Required, e.Optional} {
		for _, name := range names {
			if v, ok := m[name]; ok {
				out[name] = v
			}
		}
	}
	return out
}

func quoted(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil { // a string can always be encoded
		return json.RawMessage(`""`)
	}
	return raw
}

// Redacted replaces a value that is not shown.
const Redacted = "[REDACTED]"

// SecretLooking reports whether a name looks like that of a secret.
func SecretLooking(name string) bool { return redact.SecretName(name) }

// RedactConfigurable returns a configurable object with every value under a secret-looking key, and
// every credentialRef, replaced. It returns nil for invalid JSON.
func RedactConfigurable(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // keeps numbers as they were sent
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	out, err := json.Marshal(redacted(v))
	if err != nil {
		return nil
	}
	return out
}

func redacted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			if SecretLooking(name) || name == "credentialRef" {
				v[name] = Redacted
			} else {
				v[name] = redacted(v[name])
			}
		}
	case []any:
		for i := range v {
			v[i] = redacted(v[i])
		}
	}
	return v
}

func sortedNames(m members) []string { return slices.Sorted(maps.Keys(m)) }
