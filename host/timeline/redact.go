package timeline

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Redacted stands for a value that is not shown.
const Redacted = "[REDACTED]"

var secretWords = []string{
	"password", "passwd", "passphrase", "secret", "token", "bearer", "cookie", "credential", "otp",
	"api_key", "apikey", "private_key", "qr",
}

// SecretLooking reports whether a name is that of a secret.
func SecretLooking(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// RedactConfigurable returns a configurable object with every value under a
// secret-looking key, and every credentialRef, replaced. Text that is no
// JSON gives nil.
func RedactConfigurable(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // numbers stay as they were sent
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
