package audit_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/audit"
)

// Refusals are counted, not each written down.
func TestLimited(t *testing.T) {
	l := open(t, t.TempDir())
	r := audit.NewLimited(l)
	now := time.Now()
	r.SetNow(func() time.Time { return now })
	refuse := func(n int, target, code string) {
		t.Helper()
		for range n {
			if err := r.Refused(target, code, "run_1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines := func(f audit.Filter) (out []string) {
		for _, e := range all(t, l, f, 0) {
			out = append(out, e.Details["code"]+e.Details["count"])
		}
		return out
	}
	refuse(2500, "mail", "host_denied")
	refuse(3, "mail", "scheme_denied")
	refuse(1, "shop", "host_denied")
	if got := lines(audit.Filter{Target: "mail"}); len(got) != 13 {
		t.Errorf("%q", got)
	}
	now = now.Add(time.Hour)
	refuse(1, "shop", "host_denied")
	if got := lines(audit.Filter{Target: "mail"}); len(got) != 14 || got[13] != "host_denied2490" {
		t.Errorf("%q", got)
	}
	refuse(12, "mail", "host_denied")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lines(audit.Filter{Target: "mail"}); len(got) != 25 || got[24] != "host_denied2" {
		t.Errorf("%q", got)
	}
	if got := all(t, l, audit.Filter{Action: "policy.refused", Actor: "host", Target: "shop"}, 0); len(got) != 2 ||
		got[0].Details["run"] != "run_1" {
		t.Errorf("%+v", got)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { refuse(100, "many", "host_denied") })
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lines(audit.Filter{Target: "many"}); len(got) != 11 || got[10] != "host_denied790" {
		t.Errorf("%q", got)
	}
	sound(t, l, 38)
}
