package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/store"
)

// withClient calls do with a client of the command's host: the one that --url names, the
// one that serves the data directory, or else one of this process until do returns.
func (c *command) withClient(ctx context.Context, o app.Options, do func(*client.Client) error) error {
	k, err := c.findHost(ctx)
	if err != nil {
		return err
	}
	if k != nil {
		defer k.Close()
		return do(k)
	}
	return c.withPrivateHost(ctx, o, func(_ *app.Host, k *client.Client) error { return do(k) })
}

// withPrivateHost calls do with a host in this process that no other process can reach.
func (c *command) withPrivateHost(ctx context.Context, o app.Options,
	do func(*app.Host, *client.Client) error) (err error) {
	if err := c.requireNoHost(ctx, stopFirst); err != nil {
		return err
	}
	o.Store, o.CacheDir, o.OneRun = c.store, cacheDir(), true
	d, err := daemon.Open(ctx, daemon.Options{Host: o, Alone: true})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	serveErr := make(chan error, 1)
	go func() { serveErr <- d.Serve(serving) }()
	c.ownHost, c.client = true, client.Local(d.Dial, filepath.Join(d.Host.DataDir, daemon.SocketName))
	defer func() {
		c.client.Close()
		c.ownHost, c.client = false, nil
		stop()
		err = errors.Join(err, <-serveErr, d.Close())
	}()
	return do(d.Host, c.client)
}

// withStoredData is withClient for commands that need stored data. It makes no data directory.
func (c *command) withStoredData(ctx context.Context, do func(*client.Client) error) error {
	k, err := c.findHost(ctx)
	if err != nil {
		return err
	}
	if k == nil {
		if err := c.requireData(); err != nil {
			return err
		}
	}
	return c.withClient(ctx, app.Options{NoSandbox: true}, do)
}

// withStore is withClient for commands that change the store. It makes the data directory.
func (c *command) withStore(ctx context.Context, do func(*client.Client) error) error {
	if c.url == "" {
		if _, err := c.dataDir(); err != nil {
			return err
		}
	}
	return c.withClient(ctx, app.Options{NoSandbox: true}, do)
}

// stored returns the RunE of a command that needs stored data.
func (c *command) stored(do func(ctx context.Context, k *client.Client, args []string) error) runE {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return c.withStoredData(ctx, func(k *client.Client) error { return do(ctx, k, args) })
	}
}

// runE is what cobra runs for a command.
type runE = func(cmd *cobra.Command, args []string) error

// dataDir returns the data directory. The error is usage for a store in memory.
func (c *command) dataDir() (string, error) {
	dir, err := app.DataDir(c.store)
	if err == nil && dir == "" {
		err = usagef("a memory: store keeps nothing between commands; name another with --store badger:DIR")
	}
	return dir, err
}

// requireData returns an error if nothing is stored in the data directory.
func (c *command) requireData() error {
	dir, err := c.dataDir()
	if err != nil {
		return err
	}
	if there, err := app.Stored(c.store); err != nil || !there {
		if err != nil {
			return err
		}
		return usagef("nothing is stored in %s yet; sluice run CONNECTOR stores something there, --store names another place",
			dir)
	}
	return nil
}

// findHost finds the host that a command is for: the one that --url names, or the
// one that serves the data directory; nil when none does.
func (c *command) findHost(ctx context.Context) (*client.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	var err error
	if c.url != "" {
		c.client, err = c.remote()
		return c.client, err
	}
	if c.keyFile != "" {
		return nil, usagef("--key-file goes with --url or SLUICE_URL; the host of this data directory needs no key")
	}
	dir, err := app.DataDir(c.store)
	if err != nil || dir == "" {
		return nil, err
	}
	socket := filepath.Join(dir, daemon.SocketName)
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Type() != os.ModeSocket {
		return nil, nil
	}
	k := client.Socket(socket)
	alive, err := k.Alive(ctx)
	if err != nil {
		return nil, err
	}
	if alive {
		c.client = k
	}
	return c.client, nil // a killed host leaves its socket behind
}

// startTimeout is how long to wait for a host that has the store but does not listen yet.
const startTimeout = 10 * time.Second

// waitForStartingHost reports whether a command failed because a host that was just starting had the
// store, and that host now serves it. The command did nothing yet and can run again.
func (c *command) waitForStartingHost(ctx context.Context, err error) bool {
	var busy *store.BusyError
	if !errors.As(err, &busy) || c.client != nil || c.hasResult || !isServing(busy.PID) {
		return false
	}
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		if k, err := c.findHost(ctx); err != nil || k != nil {
			return k != nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// isServing reports whether /proc shows that a process runs sluice serve or sluice demo.
func isServing(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	args := strings.Split(string(line), "\x00")
	return err == nil && len(args) > 1 &&
		slices.ContainsFunc(args[1:], func(a string) bool { return a == "serve" || a == "demo" })
}

// remote returns the host that --url or SLUICE_URL names, with the key of --key-file
// or SLUICE_KEY. A key is never an argument.
func (c *command) remote() (*client.Client, error) {
	key := os.Getenv("SLUICE_KEY")
	if c.keyFile != "" {
		text, err := valueOrFile("--key-file", "@"+c.keyFile)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(text, "\r\n") {
			return nil, usagef("--key-file: %s has more than one line; a key file holds the key alone", c.keyFile)
		}
		key = text
	}
	if key == "" {
		return nil, usagef(
			"%s needs an API key: give it with --key-file FILE, or in SLUICE_KEY; sluice keys create makes one", c.url)
	}
	k, err := client.URL(c.url, key)
	if errors.Is(err, client.ErrAddress) {
		return nil, usagef("--url: %w", err)
	}
	return k, err
}

// requireHost is like findHost, but returns an error if no host runs.
func (c *command) requireHost(ctx context.Context) (*client.Client, error) {
	k, err := c.findHost(ctx)
	if err == nil && k == nil {
		dir, derr := app.DataDir(c.store)
		if derr != nil {
			return nil, derr
		}
		err = usagef("no host is running in %s; start one with sluice serve, or name another with --url",
			orWord(dir, "memory"))
	}
	return k, err
}

func orWord(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// A dataInUseError reports that a running host uses a data directory that a command needs
// for itself.
type dataInUseError struct{ dir, remedy string }

func (e *dataInUseError) Error() string {
	return fmt.Sprintf("a running host has %s; %s", e.dir, e.remedy)
}

// requireNoHost returns a *dataInUseError while a running host uses the data directory; remedy
// says what to do.
func (c *command) requireNoHost(ctx context.Context, remedy string) error {
	if c.url != "" {
		return usagef("this works on a data directory, not over --url; %s", remedy)
	}
	k, err := c.findHost(ctx)
	if err != nil || k == nil {
		return err
	}
	dir, err := app.DataDir(c.store)
	if err != nil {
		return err
	}
	return &dataInUseError{dir, remedy}
}

const stopFirst = "stop it first, and start it again afterwards"
