package run

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
)

// FuzzAnswerSchema: whatever schema a guest asks with, an owner is shown at most
// so many fields, each with a plain name and bounded text; what is required is
// among them, and a name that looks like a secret's is one.
func FuzzAnswerSchema(f *testing.F) {
	f.Add("credentials", []byte(
		`{"properties":{"user":{"type":"string","title":"User"},"Pass word":{"format":"password"}},"required":["user","Pass word"]}`))
	f.Add("otp", []byte(
		`{"properties":{"code":{},"n":{"type":"integer","enum":["1","2"]}},"required":["code","code","x"]}`))
	f.Add("clarification", []byte(`{"properties":{"":{"writeOnly":true},"field_1":{"enum":["\u202e"]}}}`))
	f.Add("approval", []byte(`7`))
	f.Fuzz(func(t *testing.T, kind string, raw []byte) {
		qs := &questions{parts: &parts{plan: &Plan{manifest: &abi.Manifest{}}, canary: &redact.Canary{}}}
		s := qs.reduce(kind, raw)
		if s == nil {
			return // manual_action has no fields
		}
		if len(s.Properties) > abi.MaxSchemaFields {
			t.Fatalf("%d fields", len(s.Properties))
		}
		for name, field := range s.Properties {
			if !fieldName(name) {
				t.Fatalf("a field is called %q", name)
			}
			if strings.Contains(strings.ToLower(name), "password") && !field.Secret {
				t.Fatalf("%q is shown", name)
			}
			if field.Secret && field.Enum != nil {
				t.Fatalf("%q is secret and has choices", name)
			}
			for _, text := range []string{field.Type, field.Format, field.Title} {
				if !utf8.ValidString(text) || len(text) > 400 || strings.ContainsAny(text, "\x00\x1b") {
					t.Fatalf("%q has the text %q", name, text)
				}
			}
		}
		for _, name := range s.Required {
			if _, ok := s.Properties[name]; !ok {
				t.Fatalf("%q is required and is no field", name)
			}
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
	})
}
