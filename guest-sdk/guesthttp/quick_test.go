//go:build !wasip1

package guesthttp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

// FuzzQuickReply: what the quick reader takes, the strict one reads as the same.
func FuzzQuickReply(f *testing.F) {
	for _, seed := range quickReplies {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quick, ok := guesthttp.QuickReply(text)
		if !ok {
			return
		}
		strict, err := guesthttp.StrictReply(text)
		if err != nil {
			t.Fatalf("%q is malformed, and was taken: %v", text, err)
		}
		if diff := cmp.Diff(strict, quick); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	})
}

var quickReplies = []string{
	`{"handle":0,"status":200,"headers":[["Content-Type","text/plain"],["Set-A","1"],["Set-A","2"]],"url":"https://h.example/","redirects":0,"bytes":32}`,
	`{"handle":7,"status":404,"headers":[],"url":"https://h.example/","redirects":2}`,
	`{"handle":7,"status":200,"headers":[["A","1"],["B","2"],["C","3"],["D","4"],["E","5"],["F","6"],["G","7"],["H","8"],["I","9"]],"url":"u","redirects":0}`,
}

// TestQuickReply: what hosts write is read the quick way, and nothing that needs
// decoding or is malformed.
func TestQuickReply(t *testing.T) {
	for _, text := range quickReplies {
		if _, ok := guesthttp.QuickReply(text); !ok {
			t.Errorf("%s is not read", text)
		}
	}
	for _, change := range [][2]string{
		{`"text/plain"`, `"text\/plain"`}, {`"text/plain"`, `"é"`}, {`text/plain`, "a\tb"}, {`Content-Type`, `content-type`},
		{`Content-Type`, `A b`}, {`200`, `20`}, {`200`, `0200`}, {`200`, `1000`}, {`200`, `""`}, {`}`, `} `}, {`}`, ``},
		{`"bytes":32`, `"bytes":1234567890`}, {`],[`, `][`}, {`"handle":0,`, ``},
	} {
		text := strings.Replace(quickReplies[0], change[0], change[1], 1)
		if r, ok := guesthttp.QuickReply(text); ok {
			t.Errorf("%s is read as %+v", text, r)
		}
	}
}
