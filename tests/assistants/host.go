// Package assistants is for tests of the gateway for assistants from outside: a whole host with
// records of its own making, and an assistant that may see half of them.
package assistants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// Secret stands in every record that the assistant may not see.
const Secret = "XYZZY-OUT-OF-SCOPE"

const manifest = `{"protocol_version":"0.1.0","connector_id":"https://example.org/mail","version":"1.0.0","display_name":"Mail","streams":[
 {"name":"messages","semantics":"append_only","primary_key":["id"],"selection":{"resource_field":"folder"},
  "schema":{"type":"object","properties":{"id":{"type":"string"},"folder":{"type":"string"},"subject":{"type":"string"},"salary":{"type":"string"}}}}]}`

// Open serves a host with n records in mail/messages, k0 and on. The assistant sees those of
// even numbers, without their salary.
func Open(tb testing.TB, n int) (address, token string) {
	tb.Helper()
	plenty := access.Rates{KeyPerSecond: 1_000_000, KeyBurst: 1_000_000, AddressPerSecond: 1_000_000,
		AddressBurst: 1_000_000}
	d, err := daemon.Open(tb.Context(), daemon.Options{
		Host:    app.Options{Store: "badger:" + filepath.Join(tb.TempDir(), "data"), NoSandbox: true},
		Service: app.ServiceOptions{Grace: time.Millisecond},
		Server:  web.ServerOptions{Listen: []string{"127.0.0.1:0"}, Rates: plenty},
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, d.Close()); err != nil {
			tb.Error(err)
		}
	})
	if err := fill(tb.Context(), d.Host.Store, n); err != nil {
		tb.Fatal(err)
	}
	a, err := d.Service.AddAssistant(tb.Context(),
		host.NewAssistant{Name: "notes", AssistantTerms: host.AssistantTerms{Connections: []host.AssistantGrant{
			{ConnectionID: "mail", Scope: json.RawMessage(
				`{"streams":[{"name":"messages","fields":["id","subject"],"resources":["work"]}]}`)}}}})
	if err != nil {
		tb.Fatal(err)
	}
	return "http://" + d.Address().String() + "/mcp", a.Token
}

// fill commits the records, in one run.
func fill(ctx context.Context, st store.Store, n int) error {
	now := time.Now()
	if err := st.PutConnection(ctx,
		store.Connection{ID: "mail", CreatedAt: now, Manifest: json.RawMessage(manifest)}); err != nil {
		return err
	}
	run := store.Run{ID: "run_00000000000000000000000001", ConnectionID: "mail", Status: "active", StartedAt: now}
	lease, err := st.Acquire(ctx, run, "host", "boot", time.Hour)
	if err != nil {
		return err
	}
	for i := 0; i < n; {
		b := &store.Batch{Stream: "messages"}
		for end := min(i+500, n); i < end; i++ {
			folder, subject := "work", "order"
			if i%2 == 1 {
				folder, subject = "home", Secret
			}
			b.Append(store.Change{Key: fmt.Appendf(nil, "k%d", i), EmittedAt: now.UnixMicro(),
				Data: fmt.Appendf(nil, `{"id":"k%d","folder":%q,"subject":"%s %d","salary":%q}`, i, folder, subject, i, Secret)})
		}
		c := &store.Commit{Lease: lease, Batches: []*store.Batch{b}}
		if i == n {
			over := run
			over.Status, over.FinishedAt = "succeeded", &now
			c.Run, c.End = &over, true
			c.Events = []store.Event{{ID: "evt_0000000000000001", Type: "run.completed", RunID: run.ID, ConnectionID: "mail",
				OccurredAt: now, Data: json.RawMessage(`{}`)}}
		}
		r, err := st.Submit(ctx, c)
		if err != nil {
			return err
		}
		<-r.Done()
		if _, err := r.Result(); err != nil {
			return err
		}
	}
	return nil
}
