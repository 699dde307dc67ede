//go:build unix

package cluster

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// With X-Dedup one run of a scope id is active, whichever hosts are asked at the same moment, while it waits, and when
// its host was killed; and the next one is started once it is over.
func TestDedup(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t))
	c.lease = 3 * time.Second
	c.add("a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	for i := range 8 {
		a.connect(store.ConnectionID(fmt.Sprint("c", i)), step{"do": "otp", "text": "Code?"})
	}
	begin := func(m *member, connection string) (id store.RunID, err error) {
		var out struct{ RunID store.RunID }
		_, err = m.Do(soon(t), "POST", "/v1/runs", map[string]any{"workflowId": connection, "scopeId": "invoice-7"}, &out,
			"X-Dedup", "enforce")
		return out.RunID, err
	}
	var (
		work    sync.WaitGroup
		mu      sync.Mutex
		started []store.RunID
	)
	refused := func(err error) bool { return strings.Contains(err.Error(), "run_already_active") }
	for i := range 8 {
		work.Go(func() {
			id, err := begin([]*member{a, b}[i%2], fmt.Sprint("c", i))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				started = append(started, id)
			} else if !refused(err) {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if len(started) != 1 {
		t.Fatalf("%d runs of a scope id were started", len(started))
	}
	b.wait(started[0], served.Asks)
	at := a
	for _, m := range a.list() {
		if len(m.RunIDs) > 0 && m.HostID == b.id {
			at = b
		}
	}
	other := map[*member]*member{a: b, b: a}[at]
	at.kill()
	for i := range 8 {
		if _, err := begin(other, fmt.Sprint("c", i)); err == nil || !refused(err) {
			t.Fatalf("a start beside a run whose host was killed: %v", err)
		}
	}
	if _, err := other.Cancel(soon(t), started[0]); err != nil {
		t.Fatal(err)
	}
	other.wait(started[0], served.Over)
	if _, err := begin(other, "c0"); err != nil {
		t.Error(err)
	}
}
