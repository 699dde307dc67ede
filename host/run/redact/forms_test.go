package redact_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/host/run/redact"
)

// A value is found as servers in other languages write it.
func TestForms(t *testing.T) {
	const value = `a/b<c>&"d'é😀 (e)`
	forms := redact.Forms(value)
	for name, text := range map[string]string{
		"as it is":            value,
		"JSON of Go":          `a/b\u003cc\u003e\u0026\"d'é😀 (e)`,
		"JSON of Python":      `a/b<c>&\"d'\u00e9\ud83d\ude00 (e)`,
		"JSON of PHP":         `a\/b<c>&\"d'\u00e9\ud83d\ude00 (e)`,
		"JSON with slashes":   `a\/b<c>&\"d'é😀 (e)`,
		"percent, JavaScript": `a%2Fb%3Cc%3E%26%22d'%C3%A9%F0%9F%98%80%20(e)`,
		"percent, Python":     `a/b%3Cc%3E%26%22d%27%C3%A9%F0%9F%98%80%20%28e%29`,
		"percent, form":       `a%2Fb%3Cc%3E%26%22d%27%C3%A9%F0%9F%98%80+%28e%29`,
		"percent, lower case": `a%2fb%3cc%3e%26%22d%27%c3%a9%f0%9f%98%80+%28e%29`,
		"HTML of Go":          `a/b&lt;c&gt;&amp;&#34;d&#39;é😀 (e)`,
		"HTML of Python":      `a/b&lt;c&gt;&amp;&quot;d&#x27;é😀 (e)`,
		"HTML of PHP":         `a/b&lt;c&gt;&amp;&quot;d&#39;é😀 (e)`,
		"UTF-16":              "a\x00/\x00b\x00<\x00c\x00>\x00&\x00\"\x00d\x00'\x00\xe9\x00\x3d\xd8\x00\xde \x00(\x00e\x00)\x00",
	} {
		if !slices.ContainsFunc(forms, func(f []byte) bool { return string(f) == text }) {
			t.Errorf("%s: %s is not looked for", name, text)
		}
	}
	for i, f := range forms {
		if slices.ContainsFunc(forms[:i], func(o []byte) bool { return bytes.Equal(o, f) }) {
			t.Errorf("%s is looked for twice", f)
		}
	}
	if n := len(redact.Forms("abcdefgh1234")); n > 10 {
		t.Errorf("a plain value is looked for in %d forms", n)
	}
}
