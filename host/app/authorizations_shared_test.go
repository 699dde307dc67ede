//go:build unix

package app

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/postgres"
)

// serving opens a host of a database as a service that other hosts reach.
func serving(t *testing.T, url string) (*Host, *Service) {
	t.Helper()
	h, err := Open(t.Context(),
		Options{Store: url + "&durability=weak&data=" + t.TempDir(), CacheDir: t.TempDir(), NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Service(t.Context(), ServiceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close(context.Background())
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, s
}

// An authorization that is under way at one host is followed and cancelled at another one, by whom it is of.
func TestAuthorizationAtAnotherHost(t *testing.T) {
	t.Parallel()
	url := postgres.New(t)
	_, atA := serving(t, url)
	_, _ = atA.AdmissionCode(t.Context()) // makes the vault
	b, atB := serving(t, url)
	code, err := atB.AdmissionCode(t.Context())
	if err == nil {
		err = atA.AdmitHost(t.Context(), b.ID, code)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := host.As(t.Context(), host.Principal{ID: "key:one"})
	under, end := context.WithCancel(t.Context())
	a := &authorization{by: "key:one", end: end, ended: make(chan struct{}), changed: make(chan struct{})}
	a.now.Status = host.AuthorizationStarting
	if err := atA.authorizations.admit(a); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-under.Done()
		close(a.ended)
	}()
	now, err := atB.Authorization(ctx, a.id, "")
	if err != nil || now.Status != host.AuthorizationStarting || now.AuthorizationID != a.id {
		t.Fatalf("at another host: %+v, %v", now, err)
	}
	followed := make(chan host.Authorization, 1)
	go func() {
		now, err := atB.Authorization(ctx, a.id, host.AuthorizationStarting)
		if err != nil {
			t.Error(err)
		}
		followed <- now
	}()
	a.update(func(now *host.Authorization) {
		now.Status, now.URL = host.AuthorizationWaiting, "https://server.example"
	})
	if now := <-followed; now.Status != host.AuthorizationWaiting || now.URL != "https://server.example" {
		t.Errorf("it is followed at another host: %+v", now)
	}
	if _, err := atB.Authorization(t.Context(), a.id, ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("somebody else sees it: %v", err)
	}
	if err := atB.CancelAuthorization(t.Context(), a.id); !errors.Is(err, store.ErrNotFound) || under.Err() != nil {
		t.Errorf("somebody else cancels it: %v", err)
	}
	if err := atB.CancelAuthorization(ctx, a.id); err != nil || under.Err() == nil {
		t.Errorf("it is cancelled at another host: %v", err)
	}
	for _, id := range []string{a.id, "aut_none", "aut_none_0123456789abcdef", "aut_none_" + b.ID[len(hostPrefix):], "x",
		""} {
		if _, err := atB.Authorization(ctx, id, ""); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q, which there is not: %v", id, err)
		}
	}
}
