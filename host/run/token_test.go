package run

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// A keeper is a network that remembers what it is to keep from the guest.
type keeper struct {
	binding.Binding
	binding.Keeper
	places []abi.SessionToken
	mint   func(field string, n int, value string) (string, [][]byte)
}

func (k *keeper) SealTokens(places []abi.SessionToken, mint func(string, int, string) (string, [][]byte)) {
	k.places, k.mint = places, mint
}

// TestSealSessions: places are where the owner's servers are, and everywhere while none
// is named; handles are the same in a replay, and values reach the canary.
func TestSealSessions(t *testing.T) {
	tokens := []abi.SessionToken{
		{Name: "session", Origin: "https://a.example", PathPrefix: "/login", Pointer: "/t", Placements: []string{"body"}},
		{Name: "own", Origin: abi.OwnerOrigin, PathPrefix: "/login", Cookie: "sid", Placements: []string{"body"}},
	}
	handles := func(named ...string) (k *keeper, all []string) {
		k = &keeper{}
		c := store.Connection{}
		for _, origin := range named {
			c.Approved.Destinations = map[string][]abi.Destination{"password": append(c.Approved.Destinations["password"],
				abi.Destination{Origin: origin})}
		}
		r := &secrets{parts: &parts{plan: &Plan{manifest: &abi.Manifest{Sluice: &abi.SluiceBlock{SessionTokens: tokens}}},
			canary: &redact.Canary{}}}
		r.plan.Connection = c
		r.bindings = &bindings{parts: r.parts, all: []binding.Binding{k}}
		r.deps.Handles = bytes.NewReader(bytes.Repeat([]byte("seed"), 4))
		r.sealSessions()
		for _, field := range []string{"session", "own"} {
			for n := 1; n <= 2; n++ {
				handle, _ := k.mint(field, n, "")
				all = append(all, handle)
			}
		}
		if _, forms := k.mint("session", 1, "value-of-a-session"); len(forms) == 0 {
			t.Error("nothing to look for")
		}
		r.learn()
		if got := r.canary.Text("it is value-of-a-session"); strings.Contains(got, "value") {
			t.Errorf("the log has %s", got)
		}
		return k, all
	}
	k, first := handles()
	if len(k.places) != 2 || k.places[1].Origin != "" {
		t.Errorf("places %+v", k.places)
	}
	k, second := handles("https://own.example", "https://other.example")
	if len(k.places) != 3 || k.places[1].Origin != "https://own.example" || k.places[2].Origin != "https://other.example" {
		t.Errorf("places %+v", k.places)
	}
	slices.Sort(second)
	if slices.Sort(first); !slices.Equal(first, second) || len(slices.Compact(second)) != 4 {
		t.Errorf("handles %q and %q", first, second)
	}
	if !regexp.MustCompile(`^sluice-sealed-v1-[a-z2-7]{26}$`).MatchString(first[0]) {
		t.Errorf("handle %s", first[0])
	}
}
