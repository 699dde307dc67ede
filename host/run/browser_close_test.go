package run_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A stubbornPage closes only when it is told to, whatever its context says.
type stubbornPage struct {
	racePage
	release chan struct{}
}

func (p *stubbornPage) Close(context.Context) error {
	<-p.release
	p.back.Event("run.browser_surface_released", "released", map[string]any{"surface_id": "late"})
	return nil
}

// A browser that does not close keeps no run from ending; what it says
// once it was given up is not recorded, for the terminal event is the last.
func TestBrowserThatDoesNotClose(t *testing.T) {
	m, err := abi.ReadManifest([]byte(`{"protocol_version":"0.1.0","connector_id":"racer","version":"1","display_name":"Racer",
		"runtime_requirements":{"bindings":{"browser":{}}},
		"streams":[{"name":"items","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		log, guest, page := &memory{}, newRacer(abi.KindManualAction),
			&stubbornPage{racePage{asked: make(chan struct{})}, make(chan struct{})}
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
		began := time.Now()
		result, err := current.Do(t.Context())
		if err != nil || result.Status != abi.Succeeded {
			t.Errorf("%+v, %v", result, err)
		}
		if took := time.Since(began); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("the run ended after %s", took)
		}
		before := len(log.types)
		close(page.release)
		synctest.Wait()
		if last := log.types[len(log.types)-1]; len(log.types) != before || last != "run.completed" {
			t.Errorf("the last event is %s, of %d and then %d", last, before, len(log.types))
		}
	})
}

// prompt is an owner who agrees at once.
type prompt struct{}

func (prompt) Ask(_ context.Context, q run.Question) (host.Answer, error) {
	return host.Answer{InteractionID: q.InteractionID, Status: abi.AnswerSuccess}, nil
}
