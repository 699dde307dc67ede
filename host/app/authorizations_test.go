package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// An authorization that nobody asks after is ended and forgotten; a look keeps it for a while,
// and waits no longer than it may.
func TestAuthorizationIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as := &authorizations{}
		ctx := host.As(t.Context(), host.Principal{ID: "key:one"})
		under, end := context.WithCancel(ctx)
		a := &authorization{by: "key:one", end: end, ended: make(chan struct{}), changed: make(chan struct{})}
		a.now.Status = host.AuthorizationWaiting
		if err := as.admit(a); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			time.Sleep(authorizationKept - authorizationLook - time.Second)
			begun := time.Now()
			if now, err := as.Authorization(ctx, a.id, host.AuthorizationWaiting); err != nil ||
				now.Status != host.AuthorizationWaiting || time.Since(begun) != authorizationLook {
				t.Errorf("%+v, %v after %s", now, err, time.Since(begun))
			}
		}
		if _, err := as.Authorization(t.Context(), a.id, ""); !errors.Is(err, store.ErrNotFound) || under.Err() != nil {
			t.Errorf("another sees it: %v", err)
		}
		time.Sleep(authorizationKept)
		if _, err := as.Authorization(ctx, a.id, ""); !errors.Is(err, store.ErrNotFound) || under.Err() == nil {
			t.Errorf("it is kept: %v", err)
		}
	})
}
