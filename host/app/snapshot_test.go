package app_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// What a connection is not ready for is what a start is refused with, and one that is ready
// starts.
func TestReadyAgrees(t *testing.T) {
	s, h := service(t)
	upload(t, s, manifestOf("mail", "1",
		`"network": {"required": true, "hosts": ["a.example"]}, "filesystem": {"required": true, "mounts": [{"name": "in", "mode": "ro"}]}`,
		`{"settings": {"type": "object", "required": ["account"], "properties": {"account": {"type": "string"}}}, "secrets": [{"name": "seen", "delivery": "plain", "required": true}]}`))
	if _, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail"}); err != nil {
		t.Fatal(err)
	}
	start := func(want ...string) {
		t.Helper()
		codes, err := h.NotReady(t.Context(), "mail")
		if err != nil || !slices.Equal(codes, want) {
			t.Errorf("not ready: %v, %v, want %v", codes, err, want)
		}
		l, err := h.Load(t.Context(), "mail", "")
		if err == nil {
			_, err = h.Start(t.Context(), app.RunRequest{Connector: l})
		}
		var r *run.Refusal
		if len(want) == 0 && err != nil || len(want) > 0 && (!errors.As(err, &r) || r.Code != want[0]) {
			t.Errorf("start: %v, want %v", err, want)
		}
	}
	change := func(q host.ChangeConnection) {
		t.Helper()
		if _, err := s.ChangeConnection(host.As(t.Context(), somebody), "mail", q, nil); err != nil {
			t.Fatal(err)
		}
	}
	approve := func(q host.Bindings) {
		t.Helper()
		if _, err := s.ApproveBindings(host.As(t.Context(), somebody), "mail", q); err != nil {
			t.Fatal(err)
		}
	}
	off, on, none := false, true, "9999-01-01"
	change(host.ChangeConnection{Enabled: &off})
	start("connection_disabled", "grant_invalid", "binding_not_approved", "setting_missing", "secret_missing")
	change(host.ChangeConnection{Enabled: &on, CollectionSince: &none})
	start("grant_invalid", "binding_not_approved", "setting_missing", "secret_missing")
	soon := time.Now().Add(time.Hour)
	if _, err := s.GrantConnection(host.As(t.Context(), somebody), "mail", host.GrantTerms{ExpiresAt: &soon}); err != nil {
		t.Fatal(err)
	}
	start("binding_not_approved", "setting_missing", "secret_missing")
	b := host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"a.example"}}}
	approve(b)
	start("binding_not_approved", "setting_missing", "secret_missing")
	b.Filesystem = &host.FilesystemBinding{Mounts: []host.Mount{{Name: "in", HostPath: t.TempDir()}}}
	approve(b)
	start("setting_missing", "secret_missing")
	change(host.ChangeConnection{Settings: []byte(`{"account": "a"}`)})
	start("secret_missing")
	if err := s.SetSecret(host.As(t.Context(), somebody), "mail", "seen", []byte("value")); err != nil {
		t.Fatal(err)
	}
	start("binding_not_approved")
	b.PlainAcknowledged = []string{"seen"}
	approve(b)
	start()
	active := store.Run{ID: "run_1", ConnectorID: "mail", ConnectionID: "mail", Status: "active"}
	if _, err := h.Store.Acquire(t.Context(), active, "h", "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	start("run_already_active")
}

// A connector that must ask, and may not.
func TestMayNotAsk(t *testing.T) {
	s, h := service(t)
	upload(t, s, manifestOf("ask", "1", `"interactive": {"required": true}`, ""))
	if _, err := s.CreateConnection(host.As(t.Context(), somebody), host.NewConnection{ConnectorName: "ask"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GrantConnection(host.As(t.Context(), somebody), "ask", host.GrantTerms{}); err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []bool{false, true} {
		if _, err := s.ApproveBindings(host.As(t.Context(), somebody), "ask",
			host.Bindings{Interactive: &allowed}); err != nil {
			t.Fatal(err)
		}
		if codes, err := h.NotReady(t.Context(), "ask"); err != nil ||
			slices.Contains(codes, "binding_unsatisfied") == allowed {
			t.Errorf("allowed %v: %v, %v", allowed, codes, err)
		}
	}
}

// What the host obtains is there once it has what it takes; it is not typed.
func TestReadyWithToken(t *testing.T) {
	s, h := service(t)
	upload(t, s, manifestOf("mail", "1", `"network": {"hosts": ["a.example"]}`, `{"secrets": [{"name": "key", "required": true}, {"name": "token", "required": true,
		"oauth": {"grant": "client_credentials", "token_url": "https://auth.example/token", "client_id": "c", "client_secret": "key"}}]}`))
	if _, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GrantConnection(host.As(t.Context(), somebody), "mail", host.GrantTerms{}); err != nil {
		t.Fatal(err)
	}
	if codes, err := h.NotReady(t.Context(), "mail"); err != nil || !slices.Equal(codes, []string{"secret_missing"}) {
		t.Errorf("%v, %v", codes, err)
	}
	refused(t, s.SetSecret(host.As(t.Context(), somebody), "mail", "token", []byte(marker)), "validation_error",
		"secret_authorized", marker)
	if err := s.SetSecret(host.As(t.Context(), somebody), "mail", "key", []byte("k")); err != nil {
		t.Fatal(err)
	}
	if codes, err := h.NotReady(t.Context(), "mail"); err != nil || len(codes) > 0 {
		t.Errorf("%v, %v", codes, err)
	}
	// The server that gives out tokens is the host's to reach, and is approved like others.
	if _, err := s.ApproveBindings(host.As(t.Context(), somebody), "mail",
		host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"auth.example"}}}); err != nil {
		t.Error(err)
	}
}
