package api_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// shared is the one daemon of the tests: a real host with a real store, behind a
// real server, with the conformance connectors and examples/ask installed.
var shared struct {
	once  sync.Once
	err   error
	d     *daemon.Daemon
	dir   string // the data directory's parent
	close func(context.Context) error
}

// all are the scopes, all of them.
var all = access.Everything.List()

// fixtures are the conformance connectors of stage 1.
var fixtures = []string{"conformance-approval", "conformance-cancellable", "conformance-clarification",
	"conformance-delay",
	"conformance-failure", "conformance-idempotent", "conformance-noop"}

func open(ctx context.Context) (err error) {
	if shared.dir, err = os.MkdirTemp("", "sluice-api-"); err != nil {
		return err
	}
	cache, err := build.CacheDir()
	if err != nil {
		return err
	}
	plenty := access.Rates{KeyPerSecond: 100_000, KeyBurst: 100_000, AddressPerSecond: 100_000, AddressBurst: 100_000,
		LoginsPerMinute: 100}
	d, err := daemon.Open(ctx, daemon.Options{
		Host:            app.Options{Store: "badger:" + filepath.Join(shared.dir, "data"), CacheDir: cache, Prespawn: -1},
		Service:         app.ServiceOptions{Grace: time.Millisecond},
		Server:          web.ServerOptions{Listen: []string{"127.0.0.1:0"}, Rates: plenty, PerAddress: 1000},
		WebhookLoopback: true,
	})
	if err != nil {
		return err
	}
	shared.d = d
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.Serve(serving) }()
	shared.close = func(context.Context) error {
		stop()
		return errors.Join(<-served, d.Close(), os.RemoveAll(shared.dir))
	}
	for _, name := range fixtures {
		if err := install(ctx, d.Host, "examples/conformance/"+name, true); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return install(ctx, d.Host, "examples/ask", false)
}

// install installs a connector of this repository.
func install(ctx context.Context, h *app.Host, source string, conformance bool) error {
	wasm, err := build.Module(source)
	if err != nil {
		return err
	}
	l, err := h.Load(ctx, wasm, filepath.Join("../..", source, "manifest.json"))
	if err != nil {
		return err
	}
	_, err = h.Install(ctx, l, app.InstallOptions{Conformance: conformance})
	return err
}

// served is the daemon of the tests and a key that may do everything.
func served(t *testing.T) *client {
	t.Helper()
	shared.once.Do(func() { shared.err = open(context.Background()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	c := &client{t: t, base: "http://" + shared.d.Address().String()}
	c.key = key(t, access.NewKey{Scopes: all})
	return c
}

// key makes an API key as the owner does.
func key(t *testing.T, n access.NewKey) string {
	t.Helper()
	if n.Name == "" {
		n.Name = t.Name()
	}
	if n.Mode == "" {
		n.Mode = access.Live
	}
	_, secret, err := shared.d.Server.Access().Keys.Create(t.Context(), access.OfSocket("test"), n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func theStore() store.Store { return shared.d.Host.Store }

// eventually waits for what nothing announces.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
