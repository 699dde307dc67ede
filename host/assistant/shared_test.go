package assistant_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
)

// Hosts that share a store have the same assistants: one that was made at a host is known at the others, its calls are
// counted together, and one that was revoked at a host is refused by all, for good.
func TestShared(t *testing.T) {
	w := newWorld(t)
	other := worldOver(t, w.store)
	a := w.add("notes")
	if name, err := other.gateway.AuthenticateAssistant(t.Context(), a.Token); err != nil || name != "notes" {
		t.Fatalf("at another host it is %q: %v", name, err)
	}
	here, there := w.connect("notes"), other.connect("notes")
	const each = 3
	for range each {
		for at, s := range map[*world]func() (string, bool){
			w:     func() (string, bool) { return w.call(here, "data", object{}) },
			other: func() (string, bool) { return other.call(there, "data", object{}) },
		} {
			if text, ok := s(); !ok {
				t.Fatal(text)
			}
			_, err := at.gateway.Assistants(t.Context()) // which has it written down
			at.must(err)
		}
	}
	for _, at := range []*world{w, other} {
		shown, err := at.gateway.Assistant(t.Context(), "notes")
		at.must(err)
		calls, err := at.gateway.AssistantCalls(t.Context(), "notes", 0, 100)
		at.must(err)
		if shown.Calls != 2*each || len(calls) != 2*each {
			t.Errorf("%d calls are counted, and %d are listed", shown.Calls, len(calls))
		}
	}
	_, err := w.gateway.RevokeAssistant(t.Context(), "notes")
	w.must(err)
	if text, ok := other.call(there, "data", object{}); ok {
		t.Errorf("a call of one that was revoked at another host: %s", text)
	}
	for _, at := range []*world{other, w, other} {
		_, err := at.gateway.Assistants(t.Context())
		at.must(err)
		if _, err := at.gateway.AuthenticateAssistant(t.Context(), a.Token); !errors.Is(err, access.ErrKeyRevoked) {
			t.Errorf("the token of one that was revoked: %v", err)
		}
	}
	var made sync.WaitGroup
	results := make(chan error, 2)
	for _, at := range []*world{w, other} {
		made.Go(func() {
			_, err := at.gateway.AddAssistant(t.Context(), host.NewAssistant{Name: "notes", AssistantTerms: a.AssistantTerms})
			results <- err
		})
	}
	made.Wait()
	first, second := <-results, <-results
	var no *host.Refusal
	if (first == nil) == (second == nil) || !errors.As(errors.Join(first, second), &no) || no.Code != "conflict" {
		t.Errorf("one name was given at two hosts: %v, %v", first, second)
	}
	if _, err := other.gateway.AuthenticateAssistant(t.Context(), a.Token); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("an earlier token of the name: %v", err)
	}
}
