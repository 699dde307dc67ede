package app_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

func member(id string, capacity, runs int, labels ...string) store.Member {
	return store.Member{ID: id, Epoch: id,
		About: store.About{Capacity: capacity, Labels: labels, Key: []byte("key"), KeyCode: []byte("code")}, Runs: runs}
}

// Labels are names, with a value or without, and not more than a page shows.
func TestLabels(t *testing.T) {
	for label, good := range map[string]bool{"gpu": true, "site=berlin": true, "a/b.c-d=X_1.2": true, "": false,
		"Site=x": false, "site=": false, "a b": false, "a=b=c": false, "a=\x1b": false} {
		if err := app.CheckLabels([]string{label}); (err == nil) != good {
			t.Errorf("%q: %v", label, err)
		}
	}
	if app.CheckLabels(slices.Repeat([]string{"a"}, 17)) == nil {
		t.Error("a host has 17 labels")
	}
}

// Of the hosts that have what a connection needs, and that start runs, each has one place in an order
// that all agree on; hosts with more room are first more often.
func TestPlace(t *testing.T) {
	all := []store.Member{member("full", 8, 8, "site=berlin"), member("free", 8, 0, "site=berlin", "browser"),
		member("other", 8, 0), member("command", 0, 0, "site=berlin")}
	drained := member("drained", 8, 0, "site=berlin")
	drained.Draining = true
	all = append(all, drained)
	first := map[string]int{}
	for i := range 1000 {
		draw := string(rune('a'+i%26)) + string(rune('0'+i/26))
		places := map[int]string{}
		for _, m := range all {
			place := app.PlaceOf(all, m.Epoch, []string{"site=berlin"}, draw)
			if fits := m.ID == "full" || m.ID == "free"; fits != (place >= 0) {
				t.Fatalf("host %s has place %d", m.ID, place)
			}
			if place >= 0 {
				places[place] = m.ID
			}
		}
		if len(places) != 2 {
			t.Fatalf("places %v", places)
		}
		first[places[0]]++
	}
	if first["free"] < 800 || first["full"] == 0 {
		t.Errorf("first: %v", first)
	}
	if p := app.PlaceOf(all, "free", []string{"site=berlin", "browser"}, "x"); p != 0 {
		t.Errorf("the only host with a browser has place %d", p)
	}
	if p := app.PlaceOf(all, "free", []string{"site=paris"}, "x"); p != -1 {
		t.Errorf("a host without the label has place %d", p)
	}
	var ids []string
	foreign := member("not-admitted", 16, 0, "site=berlin")
	foreign.KeyCode = nil
	for _, m := range app.Takers(append(all, foreign), "other", []string{"site=berlin"}) {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, []string{"free", "full"}) {
		t.Errorf("a start is passed on to %v", ids)
	}
}

// What a start leaves out is left out at the host that it is passed on to.
func TestStartPassedOn(t *testing.T) {
	text, err := json.Marshal(host.StartRun{WorkflowID: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	var got host.StartRun
	if err := json.Unmarshal(text, &got); err != nil || got.WorkflowID != "notes" || got.Inputs != nil || got.Scope != nil {
		t.Errorf("%s is read as %+v, %v", text, got, err)
	}
}
