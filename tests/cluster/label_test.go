//go:build unix

package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A connection that requires a label runs at the host that has it, whichever is asked and whichever
// is first when it is due; without such a host a start is refused, and a schedule says why.
func TestLabels(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a")
	a := c.hosts["a"]
	a.install()
	a.connect("placed", step{"do": "emit", "n": 1})
	labels := []string{"site=berlin"}
	a.do("PATCH", "/v1/connections/placed", host.ChangeConnection{Labels: &labels}, nil)
	lacks := func(id string) bool {
		var c host.Connection
		a.do("GET", "/v1/connections/"+id, nil, &c)
		return slices.Contains(c.NotReady, "host_label_missing")
	}
	if !lacks("placed") {
		t.Error("a connection is ready whose label no host has")
	}
	if _, err := a.Start(soon(t), "placed", ""); err == nil || !strings.Contains(err.Error(), "site=berlin") {
		t.Errorf("a start without a host that has the label: %v", err)
	}
	second := int64(1)
	a.do("PUT", "/v1/connections/placed/schedule", host.ScheduleDefinition{IntervalSeconds: &second}, nil)
	history := func() (all []host.Tick) {
		var page struct{ Data []host.Tick }
		a.do("GET", "/v1/connections/placed/schedule/history?limit=200", nil, &page)
		return page.Data
	}
	until(t, "the history says that no host has the label", func() bool {
		for _, k := range history() {
			if strings.Contains(k.Error, "host_label_missing") {
				return true
			}
		}
		return false
	})
	b := c.join("b", "--label", "site=berlin")
	until(t, "the schedule runs at the host that has the label", func() bool {
		for _, k := range history() {
			if k.Status == "succeeded" {
				return true
			}
		}
		return false
	})
	a.do("DELETE", "/v1/connections/placed/schedule", nil, nil)
	a.connect("by-hand", step{"do": "stamp", "n": 100_000, "ms": 20})
	a.do("PATCH", "/v1/connections/by-hand", host.ChangeConnection{Labels: &labels}, nil)
	if lacks("by-hand") {
		t.Error("a connection is not ready whose label another host has")
	}
	for _, key := range []string{"", "key"} {
		id, err := a.Start(soon(t), "by-hand", key)
		if err != nil {
			t.Fatal(err)
		}
		if at := a.performer(id); at != b.id {
			t.Errorf("the run is at host %q and not at %s, which has the label", at, b.id)
		}
		for _, m := range []*member{a, b} {
			if key == "" {
				break
			}
			if again, err := m.Start(soon(t), "by-hand", key); err != nil || again != id {
				t.Errorf("the key of run %s started %s: %v", id, again, err)
			}
		}
		if _, err := a.Cancel(soon(t), id); err != nil {
			t.Fatal(err)
		}
		a.wait(id, served.Over)
		a.whole(id)
	}
}
