//go:build unix

package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/postgres"
)

// performed stores a run that a host performed, and that is over.
func performed(t *testing.T, h *Host, by string) store.RunID {
	t.Helper()
	now, id := time.Now(), run.NewRunID(time.Now())
	row := store.Run{ID: id, ConnectionID: "c", Status: "active", StartedAt: now, TriggerKind: "manual", HostID: by}
	lease, err := h.Store.Acquire(t.Context(), row, h.ID, h.Epoch, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	row.Status, row.FinishedAt = "succeeded", &now
	receipt, err := h.Store.Submit(t.Context(), &store.Commit{Lease: lease, Run: &row, End: true,
		Events: []store.Event{{ID: "evt_0000000000000001", Type: "run.completed", OccurredAt: now, RunID: id,
			ConnectionID: "c", Data: json.RawMessage(`{}`)}}})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// What only the host has that performed a run leads there from any other, for as long as the others know of it.
func TestPerformedElsewhere(t *testing.T) {
	t.Parallel()
	url := postgres.New(t)
	a, atA := sharing(t, url)
	_, atB := sharing(t, url)
	if err := atA.hosts.Announce(t.Context(), func(a *store.About) { a.URL = "https://a.example" }); err != nil {
		t.Fatal(err)
	}
	id, unknown := performed(t, a, a.ID), performed(t, a, "host_unknown")
	if err := a.requests.Add(audit.Request{Run: string(id), Method: "GET"}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(browser.Traces(a.DataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	trace, err := browser.BeginTrace(browser.Traces(a.DataDir), string(id))
	if err == nil {
		_, err = trace.Finish(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	atA.runs.recordings.of = map[store.RunID]host.Recording{id: {Text: "recorded"}}
	for name, look := range map[string]func(context.Context, *Service, store.RunID) (there bool, err error){
		"requests": func(ctx context.Context, s *Service, id store.RunID) (bool, error) {
			all, err := s.Requests(ctx, id, 0, 10)
			return len(all) > 0, err
		},
		"trace": func(ctx context.Context, s *Service, id store.RunID) (bool, error) {
			_, err := s.ArtifactSize(ctx, id, browser.TraceArtifact)
			if errors.Is(err, store.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		},
		"opened trace": func(ctx context.Context, s *Service, id store.RunID) (bool, error) {
			f, _, err := s.OpenArtifact(ctx, id, browser.TraceArtifact)
			if errors.Is(err, store.ErrNotFound) {
				return false, nil
			}
			if err == nil {
				err = f.Close()
			}
			return err == nil, err
		},
		"recording": func(ctx context.Context, s *Service, id store.RunID) (bool, error) {
			got, err := s.Recording(ctx, id)
			if errors.Is(err, store.ErrNotFound) {
				return false, nil
			}
			return got.Text != "", err
		},
	} {
		_, err := look(t.Context(), atB, id)
		var away *host.Refusal
		page := "https://a.example/ui/runs/" + string(id)
		if !errors.As(err, &away) || away.Code != "conflict" || away.Details["hostId"] != a.ID ||
			away.Details["url"] != page || !strings.Contains(away.Message, a.ID) || !strings.Contains(away.Message, page) {
			t.Errorf("%s at another host: %v", name, err)
		}
		if there, err := look(t.Context(), atB, unknown); there || err != nil {
			t.Errorf("%s of a host that nobody knows: %t, %v", name, there, err)
		}
		if there, err := look(t.Context(), atA, id); !there || err != nil {
			t.Errorf("%s at its host: %t, %v", name, there, err)
		}
	}
	if got, err := atA.Recording(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a recording is handed over twice: %+v, %v", got, err)
	}
}
