// Package served is a service for tests: the Daemon that sluice serve runs, on
// loopback over a temporary data directory, and a client of its API. End-to-end
// tests and benchmarks share it.
package served

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/tests/build"
)

// A Host is a running service. Client is its owner's.
type Host struct {
	*daemon.Daemon
	*Client
	Dir string

	stop  context.CancelFunc
	ended chan error
}

// plenty is a rate that no test reaches.
const plenty = 1 << 20

// Options returns the options of a service in dir whose rate limits no test reaches.
func Options(dir string) (daemon.Options, error) {
	cache, err := build.CacheDir()
	return daemon.Options{
		Host: app.Options{Store: "badger:" + dir, CacheDir: cache,
			Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))},
		Service: app.ServiceOptions{Grace: time.Millisecond},
		Server: web.ServerOptions{Listen: []string{"127.0.0.1:0"}, MetricsOpen: true, PerAddress: 4096, Rates: access.Rates{
			KeyPerSecond: plenty, KeyBurst: plenty, AddressPerSecond: plenty, AddressBurst: plenty, LoginsPerMinute: plenty,
			TokenPostsPerMinute: plenty,
		}},
	}, err
}

// Open starts a service.
func Open(o daemon.Options, dir string) (*Host, error) {
	d, err := daemon.Open(context.Background(), o)
	if err != nil {
		return nil, err
	}
	h := &Host{Daemon: d, Dir: dir, Client: Socket(filepath.Join(dir, daemon.SocketName)), ended: make(chan error, 1)}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	go func() { h.ended <- d.Serve(ctx) }()
	return h, nil
}

// Close ends the service as Ctrl-C does.
func (h *Host) Close() error {
	h.stop()
	err := errors.Join(<-h.ended, h.Daemon.Close())
	h.HTTP.CloseIdleConnections()
	return err
}

// TCP returns a client at the network address, with a new key.
func (h *Host) TCP(ctx context.Context) (*Client, error) {
	var made struct{ Key string }
	_, err := h.Do(ctx, "POST", "/v1/api-keys", map[string]any{"name": "e2e", "mode": access.Live, "scopes": access.All()},
		&made)
	return &Client{Base: "http://" + h.Address().String(), Key: made.Key,
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}, err
}

// TempDir returns a directory whose name is short enough for a socket in it.
func TempDir() (string, error) { return os.MkdirTemp("/tmp", "sluice-e2e-") }
