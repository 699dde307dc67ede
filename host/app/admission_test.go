//go:build unix

package app

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/postgres"
)

// sharing opens a host of a database as a service.
func sharing(t *testing.T, url string) (*Host, *Service) {
	t.Helper()
	h, err := Open(t.Context(),
		Options{Store: url + "&durability=weak&data=" + t.TempDir(), CacheDir: t.TempDir(), NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Service(t.Context(), ServiceOptions{Idle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close(t.Context())
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, s
}

// What another host had that is gone is refused until somebody takes it.
func TestOrphan(t *testing.T) {
	t.Parallel()
	a, atA := sharing(t, postgres.New(t))
	if err := a.Store.PutConnection(t.Context(),
		store.Connection{ID: "c", ConnectorID: "https://example.org/c"}); err != nil {
		t.Fatal(err)
	}
	id := run.NewRunID(time.Now())
	if _, err := a.Store.Acquire(t.Context(), store.Run{ID: id, ConnectionID: "c", Status: "active"}, "host_gone",
		"boot_gone", time.Hour); err != nil {
		t.Fatal(err)
	}
	_, err := atA.MintView(t.Context(), "owner", host.MintView{RunID: id, Mode: "watch"})
	if refused := (*host.Refusal)(nil); !errors.As(err, &refused) || refused.Code != "unavailable" {
		t.Errorf("a view of the run of a host that is gone: %v", err)
	}
}

// What one host keeps sealed another one opens once it is admitted, and not before, nor after it
// was removed.
func TestVaultOfHosts(t *testing.T) {
	t.Parallel()
	url := postgres.New(t)
	a, atA := sharing(t, url)
	_, err := atA.AdmissionCode(t.Context()) // which makes the vault
	if refused := (*host.Refusal)(nil); !errors.As(err, &refused) || refused.Code != "conflict" {
		t.Errorf("the first host: %v", err)
	}
	k, err := a.vault()
	if err == nil {
		err = k.Set("mail", "token", []byte("one"))
	}
	if err != nil {
		t.Fatal(err)
	}
	b, atB := sharing(t, url)
	_, err = b.ofRun(asking("token"), "mail", nil)
	if refused := (*run.Refusal)(nil); !errors.As(err, &refused) || refused.Code != "unavailable" ||
		!strings.Contains(refused.Message, "sluice hosts admit "+b.ID) {
		t.Errorf("a host that is not admitted: %v", err)
	}
	if given, err := b.ofRun(asking(), "mail", nil); len(given) != 0 || err != nil {
		t.Errorf("a run without secrets: %v, %v", given, err)
	}
	err = b.SigningSecrets().Set("whk_1", []byte("secret"))
	if refused := (*host.Refusal)(nil); !errors.As(err, &refused) || refused.Code != "unavailable" ||
		!strings.Contains(refused.Message, "sluice hosts admit "+b.ID) {
		t.Errorf("set at a host that is not admitted: %v", err)
	}
	code, err := atB.AdmissionCode(t.Context())
	if err == nil {
		err = atA.AdmitHost(t.Context(), b.ID, code)
	}
	if err != nil {
		t.Fatal(err)
	}
	if given, err := b.ofRun(asking("token"), "mail", nil); given["token"] != "one" || err != nil {
		t.Errorf("a host that is admitted: %v, %v", given, err)
	}
	if err := b.SigningSecrets().Set("whk_1", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if got, err := a.SigningSecrets().Get("whk_1"); string(got) != "secret" || err != nil {
		t.Errorf("a webhook of another host is signed with %q, %v", got, err)
	}
	if ids, err := a.SigningSecrets().IDs(); len(ids) != 0 || err != nil {
		t.Errorf("%v, %v: another host may be adding its webhook", ids, err)
	}
	of, err := a.journalSecrets()
	if err != nil {
		t.Fatal(err)
	}
	if all, err := b.journalSecrets(); err != nil || len(all) != 1 || string(all[0]) != string(of[0]) {
		t.Errorf("%d keys of journals, %v", len(all), err)
	}
	if err := atA.RemoveHost(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if all, err := a.journalSecrets(); err != nil || len(all) != 2 || string(all[1]) != string(of[0]) ||
		string(all[0]) == string(of[0]) {
		t.Errorf("%d keys of journals after a removal, %v", len(all), err)
	}
	if _, err = b.ofRun(asking("token"), "mail", nil); err == nil {
		t.Error("a host that was removed opens a secret")
	}
	if err := atA.RemoveHost(t.Context(), b.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
}

// A member's key that somebody wrote into the database is not what an answer is sealed to, and a
// command of somebody who is no host is not done.
func TestForgedMember(t *testing.T) {
	t.Parallel()
	a, atA := sharing(t, postgres.New(t))
	_, _ = atA.AdmissionCode(t.Context())
	p, err := newPeers(atA.hosts)
	if err != nil {
		t.Fatal(err)
	}
	other, err := peerKEM.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	right, err := a.shared.Sign(t.Context(), purposeKey, keyText("boot_b", other.PublicKey().Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	m := store.Member{ID: "host_b", Epoch: "boot_b", About: store.About{Key: other.PublicKey().Bytes(), KeyCode: right}}
	if _, err := atA.keyOf(t.Context(), &m); err != nil {
		t.Errorf("a member's own key: %v", err)
	}
	for what, swap := range map[string]func(*store.Member){
		"key":     func(m *store.Member) { m.Key = p.key.PublicKey().Bytes() },
		"start":   func(m *store.Member) { m.Epoch = "boot_c" },
		"no code": func(m *store.Member) { m.KeyCode = nil },
		"code":    func(m *store.Member) { m.KeyCode = append([]byte{right[0] ^ 1}, right[1:]...) },
	} {
		forged := m
		swap(&forged)
		if _, err := p.ask(t.Context(), &forged, command{Verb: "answer", Body: json.RawMessage(`"canary"`)}); err == nil {
			t.Errorf("%s: an answer is sealed to it", what)
		}
	}
	if docs, err := a.Store.Documents(t.Context(), store.DocumentQuery{Kind: store.Commands}); len(docs) != 0 ||
		err != nil {
		t.Errorf("%d commands, %v", len(docs), err)
	}
	if err := p.send(t.Context(), "boot_a/1", p.key.PublicKey().Bytes(), command{Verb: "cancel"}); err != nil {
		t.Fatal(err)
	}
	d, err := a.Store.Document(t.Context(), store.Commands, "boot_a/1")
	if err != nil {
		t.Fatal(err)
	}
	var c command
	if err := p.open(t.Context(), p.key, d, &c); err != nil || c.Verb != "cancel" {
		t.Errorf("a host's command: %v", err)
	}
	var s sent
	if err := json.Unmarshal(d.Data, &s); err != nil {
		t.Fatal(err)
	}
	s.Code = make([]byte, len(s.Code))
	if d.Data, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	if err := p.open(t.Context(), p.key, d, &c); err == nil {
		t.Error("a command of nobody is read")
	}
}
