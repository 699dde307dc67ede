package abi_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

func TestNearest(t *testing.T) {
	known := []string{"subject", "author_name", "authored_at", "body", "id"}
	for word, want := range map[string]string{
		"subjet": "subject", "subjects": "subject", "Subject": "subject", "sbuject": "subject", "author": "",
		"autor_name": "author_name", "ib": "id", "xy": "", "": "", "bdoy": "body", strings.Repeat("subject", 10): "",
	} {
		if got := abi.Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := abi.Nearest("subject", []string{strings.Repeat("s", 65)}); got != "" {
		t.Errorf("a word of 65 bytes is near: %q", got)
	}
}

func TestSuggest(t *testing.T) {
	many := strings.Fields("a1 b2 c3 d4 e5 f6 g7 h8 i9 j0 k1 l2 m3")
	for _, c := range []struct {
		word  string
		known []string
		want  string
	}{
		{"bodi", []string{"body", "id"}, "did you mean body?"},
		{"zzzz", []string{"body", "id"}, "there are body, id"},
		{"zzzz", nil, "there are none"},
		{"zzzz", many, "there are a1, b2, c3, d4, e5, f6, g7, h8, i9, j0, k1, l2 and 1 more"},
	} {
		if got := abi.Suggest(c.word, c.known); got != c.want {
			t.Errorf("Suggest(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}
