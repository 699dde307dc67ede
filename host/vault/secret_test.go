package vault_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// No printer, encoder or logger shows a value, wherever the secret stands.
func TestSecretIsNotShown(t *testing.T) {
	const canary = "canary-7f3a9c"
	v := open(t, t.TempDir())
	set(t, v, "mail", "token", canary)
	s, err := v.Get("mail", "token")
	if err != nil {
		t.Fatal(err)
	}
	exported := struct{ Secret any }{s}
	hidden := struct{ secret any }{s}
	deep := map[string]any{"list": []any{s, &s, exported, &exported, hidden, &hidden}}
	var out bytes.Buffer
	for _, x := range []any{s, &s, exported, &exported, hidden, &hidden, deep} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%t", "%p", "%10.3s",
			"%#x", "%c", "%U"} {
			fmt.Fprintf(&out, verb+"\n", x)
		}
		fmt.Fprintln(&out, x, fmt.Errorf("wrapped: %v", x), errors.New(fmt.Sprint(x)))
		if err := json.NewEncoder(&out).Encode(x); err != nil {
			t.Error(err)
		}
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("message", "key", x, slog.Group("group", "key", x))
		}
	}
	text := out.String()
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary),
		strings.Trim(fmt.Sprint([]byte(canary)), "[]"), strings.Trim(fmt.Sprintf("%#v", []byte(canary)), "[]byte{}")} {
		if strings.Contains(text, form) {
			t.Errorf("the value is shown as %s", form)
		}
	}
	if got := s.String() + s.GoString() + s.LogValue().String(); got != strings.Repeat("[redacted]", 3) {
		t.Errorf("shown as %s", got)
	}
	b, err := json.Marshal(map[string]any{"a": s, "b": &s})
	if string(b) != `{"a":"[redacted]","b":"[redacted]"}` || err != nil {
		t.Errorf("encoded as %s, %v", b, err)
	}
	key, err := s.MarshalText()
	if string(key) != "[redacted]" || err != nil {
		t.Errorf("encoded as %s, %v", key, err)
	}
}

func TestWipe(t *testing.T) {
	v := open(t, t.TempDir())
	set(t, v, "mail", "token", "value")
	s, err := v.Get("mail", "token")
	if err != nil {
		t.Fatal(err)
	}
	var kept []byte
	s.Use(func(b []byte) {
		if cap(b) != len(b) {
			t.Error("the value can be appended to in place")
		}
		kept = b
	})
	again := s
	s.Wipe()
	s.Wipe()
	if !bytes.Equal(kept, make([]byte, 5)) {
		t.Errorf("the bytes are still %q", kept)
	}
	again.Use(func(b []byte) {
		if len(b) != 0 {
			t.Errorf("a copy still gives %q", b)
		}
	})
}
