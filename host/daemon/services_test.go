package daemon_test

import (
	"context"
	"os"
	"testing"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/hosttest"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/tests/build"
)

// The test binary is its own workers.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestServices holds the application and the client to one suite.
func TestServices(t *testing.T) {
	wasm, err := build.Guest("examples/ask")
	if err == nil {
		wasm, err = sandbox.EmbedManifest(wasm, []byte(hosttest.Manifest))
	}
	if err != nil {
		t.Fatal(err)
	}
	hold := func(d *daemon.Daemon) hosttest.Hold { return hosttest.HoldIn(d.Host.Store, d.Host.ID, d.Host.Epoch) }
	t.Run("application", func(t *testing.T) {
		d := alone(t)
		hosttest.Test(t, wasm, d.Service, hold(d))
	})
	t.Run("client", func(t *testing.T) {
		d := alone(t)
		c := client.Local(d.Dial, "this process")
		defer c.Close()
		hosttest.Test(t, wasm, c, hold(d))
	})
}

// alone is a served host with nothing in it that only this process reaches.
func alone(t *testing.T) *daemon.Daemon {
	t.Helper()
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.Open(t.Context(),
		daemon.Options{Host: app.Options{Store: "badger:" + t.TempDir(), CacheDir: cache, Prespawn: -1}, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- d.Serve(serving) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
