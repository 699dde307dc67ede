package run_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A talkativePage has something to tell before it closes, again and again: a guest
// can ask for decisions about cookies without end.
type talkativePage struct{ racePage }

func (p *talkativePage) Close(context.Context) error {
	for range 5000 {
		p.back.Event("run.browser_cookie_handoff", "decided",
			map[string]any{"host": "a.example", "count": 0, "granted": false, "reason": "not_declared"})
	}
	p.back.Event("run.completed", "succeeded", nil)
	p.back.Event("run.browser_surface_released", "released", map[string]any{"surface_id": "sf_1"})
	return nil
}

// What a guest can have told without end does not fill the timeline, and
// nothing but events of browsers is told.
func TestBrowserFloodsTimeline(t *testing.T) {
	m, err := abi.ReadManifest([]byte(`{"protocol_version":"0.1.0","connector_id":"racer","version":"1","display_name":"Racer",
		"runtime_requirements":{"bindings":{"browser":{}}},
		"streams":[{"name":"items","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		log, guest, page := &memory{}, newRacer(abi.KindManualAction), &talkativePage{racePage{asked: make(chan struct{})}}
		close(guest.until)
		plan, err := run.Prepare(t.Context(), log, run.Input{
			Connector:  store.Connector{ID: "racer", Name: "racer"},
			Connection: store.Connection{ID: "racer", Enabled: true, Approved: store.Approved{Browser: true}},
			Manifest:   m, Transport: "abi", UsesABI: true, Interactive: true, Trigger: "manual",
			Kinds: kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
		})
		if err != nil {
			t.Fatal(err)
		}
		current := run.New(plan, run.Deps{
			Store: log, Owner: prompt{}, Bindings: []binding.Binding{page}, HostID: "host", BootEpoch: "boot",
			Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return guest, nil, nil },
		})
		if result, err := current.Do(t.Context()); err != nil || result.Status != abi.Succeeded {
			t.Errorf("%+v, %v", result, err)
		}
		said := strings.Join(log.types, " ")
		if n := strings.Count(said, "run.browser_cookie_handoff"); n != 1000 {
			t.Errorf("%d decisions are in the timeline", n)
		}
		if strings.Count(said, "run.completed") != 1 || !strings.Contains(said, "run.browser_surface_released") {
			t.Errorf("%s", said[max(0, len(said)-200):])
		}
	})
}
