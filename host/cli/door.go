package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
)

// through gives a command its host: the one that serves the data directory or that
// --url names, or else one of its own, for as long as do takes.
func (c *command) through(ctx context.Context, o app.Options, do func(*client.Client) error) error {
	k, err := c.running(ctx)
	if err != nil {
		return err
	}
	if k != nil {
		defer k.Close()
		return do(k)
	}
	return c.alone(ctx, o, func(_ *app.Host, k *client.Client) error { return do(k) })
}

// alone opens a host in this process, which nobody else can reach.
func (c *command) alone(ctx context.Context, o app.Options, do func(*app.Host, *client.Client) error) (err error) {
	if err := c.unheld(ctx, stopFirst); err != nil {
		return err
	}
	o.Store, o.CacheDir = c.store, cacheDir()
	d, err := daemon.Open(ctx, daemon.Options{Host: o, Alone: true})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- d.Serve(serving) }()
	c.own, c.found = true, client.Local(d.Dial, filepath.Join(d.Host.DataDir, daemon.SocketName))
	defer func() {
		c.found.Close()
		c.own, c.found = false, nil
		stop()
		err = errors.Join(err, <-served, d.Close())
	}()
	return do(d.Host, c.found)
}

// reading gives a command what is stored. It makes no data directory.
func (c *command) reading(ctx context.Context, do func(served) error) error {
	k, err := c.running(ctx)
	if err != nil {
		return err
	}
	if k == nil {
		if err := c.hasData(); err != nil {
			return err
		}
	}
	return c.through(ctx, app.Options{NoSandbox: true}, func(k *client.Client) error { return do(served{k}) })
}

// storing gives a command a store to change. It makes the data directory.
func (c *command) storing(ctx context.Context, do func(*client.Client) error) error {
	if c.url == "" {
		if _, err := c.lasting(); err != nil {
			return err
		}
	}
	return c.through(ctx, app.Options{NoSandbox: true}, do)
}

// lasting is the data directory; a store in memory has none.
func (c *command) lasting() (string, error) {
	dir, err := app.DataDir(c.store)
	if err == nil && dir == "" {
		err = usagef("a memory: store keeps nothing between commands; name another with --store badger:DIR")
	}
	return dir, err
}

// hasData refuses a data directory in which nothing was stored.
func (c *command) hasData() error {
	dir, err := c.lasting()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db")); errors.Is(err, os.ErrNotExist) {
		return usagef("nothing is stored in %s yet; sluice run CONNECTOR stores something there, --store names another place", dir)
	}
	return nil
}

// storedHere is for what needs the data directory itself.
func (c *command) storedHere(ctx context.Context, do func(*app.Host) error) error {
	if err := c.hasData(); err != nil {
		return err
	}
	return c.with(ctx, app.Options{NoSandbox: true}, do)
}
