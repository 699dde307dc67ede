//go:build !wasip1

package guest_test

import (
	"context"
	"testing"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// What a scope admits, as a connector sees it.
func TestFilter(t *testing.T) {
	h := &tape{start: `{"run_id":"r","scope":{"streams":[
		{"name":"all"},
		{"name":"some","resources":["a","b"],"fields":["id"],"time_range":{"since":"2026-01-01T00:00:00Z","until":"2026-02-01T00:00:00Z"}}
	]},"bindings":{}}`}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		if _, ok := run.Filter("other"); ok {
			t.Error("a stream that is not in scope")
		}
		all, _ := run.Filter("all")
		some, _ := run.Filter("some")
		for _, c := range []struct {
			name      string
			got, want bool
		}{
			{"all: a field", all.Wants("x"), true},
			{"all: a resource", all.Admits("x"), true},
			{"all: a time", all.AdmitsTime("2000-01-01T00:00:00Z"), true},
			{"all: no time", all.AdmitsTime(""), true},
			{"granted field", some.Wants("id"), true},
			{"other field", some.Wants("x"), false},
			{"resource by either name", some.Admits("x", "b"), true},
			{"other resource", some.Admits("x"), false},
			{"since is in", some.AdmitsTime("2026-01-01T00:00:00Z"), true},
			{"until is out", some.AdmitsTime("2026-02-01T00:00:00Z"), false},
			{"another zone", some.AdmitsTime("2026-02-01T00:30:00+01:00"), true},
			{"before", some.AdmitsTime("2025-12-31T23:59:59Z"), false},
			{"no time", some.AdmitsTime(""), false},
		} {
			if c.got != c.want {
				t.Errorf("%s: %v", c.name, c.got)
			}
		}
		return nil
	})
}
