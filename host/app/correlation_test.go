package app_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// With Dedup one run of a scope id is active, whatever starts at the same moment; without it,
// and of others, as many as there are.
func TestDedup(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	installAs(t, h, conformanceAsk(t), conformance)
	start := func(scope string, dedup bool) (store.Run, error) {
		return s.StartRun(host.As(t.Context(), owner),
			host.StartRun{WorkflowID: "conformance-ask", Inputs: json.RawMessage(oneCode),
				Request: store.Request{ScopeID: scope}, Dedup: dedup})
	}
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		started []store.Run
		refused []map[string]any
	)
	for range 8 {
		wg.Go(func() {
			r, err := start("invoice-7", true)
			code, details := refusalCode(err)
			mu.Lock()
			defer mu.Unlock()
			switch code {
			case "":
				started = append(started, r)
			case "run_already_active":
				refused = append(refused, details)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(started) != 1 || len(refused) != 7 {
		t.Fatalf("%d started, %d refused", len(started), len(refused))
	}
	for _, d := range refused {
		after, _ := d["retryAfter"].(int)
		if d["activeRunId"] != string(started[0].ID) || d["activeHost"] != "cloud" || after < 1 {
			t.Errorf("%v", d)
		}
	}
	others := []store.Run{}
	for _, q := range []struct {
		scope string
		dedup bool
	}{{"invoice-8", true}, {"", true}, {"", true}, {"invoice-7", false}} {
		r, err := start(q.scope, q.dedup)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		others = append(others, r)
	}
	for _, r := range append(others, started...) {
		if _, err := s.CancelRun(host.As(t.Context(), owner), r.ID, ""); err != nil {
			t.Fatal(err)
		}
		over(t, h, r.ID)
	}
	if _, err := start("invoice-7", true); err != nil {
		t.Errorf("after the end of the others: %v", err)
	}
	if len(connections(t, h)) == 0 {
		t.Error("the last one has no connection")
	}
}
