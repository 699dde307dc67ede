package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/web"
)

// serveFlags are the settings of a host that is left running.
type serveFlags struct {
	config    string
	require   string
	networkFS bool
	quiet     bool
	server    web.ServerOptions
	loopback  bool // webhooks
	labels    []string
}

// serveCommands is sluice serve.
type serveCommands struct{ *command }

func (c serveCommands) serve() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run schedules, the API and your dashboard",
		Long: `Opens the data directory and serves it: runs by hand and by schedule, the run API,
and the owner's dashboard. It prints a link that logs you in once; sluice login
prints another. Commands of the same user reach it through a socket in the data
directory. Ctrl-C lets active runs end for 30 s, then stops them; a second one
kills.

It listens on loopback. Another address needs --expose and TLS: either
--tls-cert and --tls-key, or a proxy that terminates TLS, named with --proxy.

--config reads settings from a file, YAML or JSON; a flag that is given wins over
it. docs/operating.md has them all.`,
		Example: `  sluice serve
  sluice serve --listen 127.0.0.1:8080 --store badger:/var/lib/sluice
  sluice serve --config /etc/sluice/sluice.yaml
  sluice serve --listen 0.0.0.0:443 --expose --tls-cert cert.pem --tls-key key.pem --public-url https://sluice.example`,
		Args: args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := c.serveOptions(cmd, f)
			if err != nil {
				return err
			}
			return c.doServe(cmd.Context(), o)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "read settings from `FILE`")
	fl.StringArrayVar(&f.server.Listen, "listen", nil, "address to listen on, `HOST:PORT` (default "+
		web.DefaultListen+"); repeatable")
	fl.BoolVar(&f.server.Expose, "expose", false, "allow addresses that are not loopback")
	fl.StringVar(&f.server.Cert, "tls-cert", "", "certificate in a PEM `FILE`")
	fl.StringVar(&f.server.Key, "tls-key", "", "its key in a PEM `FILE`")
	fl.StringArrayVar(&f.server.Proxies, "proxy", nil, "address or `PREFIX` of a proxy that terminates TLS; repeatable")
	fl.StringVar(&f.server.PublicURL, "public-url", "", "how the outside reaches it, `URL`")
	fl.StringArrayVar(&f.server.Hosts, "host", nil, "another `NAME[:PORT]` that is answered; repeatable")
	fl.BoolVar(&f.server.MetricsOpen, "metrics-open", false, "show /metrics without a key while every address is loopback")
	fl.BoolVar(&f.loopback, "webhook-loopback", false, "let webhooks go to servers on this machine")
	fl.BoolVar(&f.networkFS, "allow-network-fs", false, "take a data directory on a network file system")
	fl.StringArrayVar(&f.labels, "label", nil, "what this host has that others may not, `NAME[=VALUE]`; repeatable")
	fl.BoolVar(&f.quiet, "quiet", false, "log warnings only")
	fl.StringVar(&f.require, "require-isolation", "", "refuse to run with less isolation: full or partial")
	fl.Lookup("require-isolation").NoOptDefVal = "full"
	return cmd
}

// prespawned is how many workers a service keeps ready.
const prespawned = 2

// serveOptions returns the file's settings and, over them, the flags that were given.
func (c serveCommands) serveOptions(cmd *cobra.Command, f *serveFlags) (daemon.Options, error) {
	file := &configFile{}
	var err error
	if f.config != "" {
		if file, err = readConfig(f.config); err != nil {
			return daemon.Options{}, err
		}
	}
	o := file.options()
	fl, s := cmd.Flags(), &o.Server
	for flag, take := range map[string]func(){
		"listen": func() { s.Listen = f.server.Listen }, "expose": func() { s.Expose = f.server.Expose },
		"tls-cert": func() { s.Cert = f.server.Cert }, "tls-key": func() { s.Key = f.server.Key },
		"proxy": func() { s.Proxies = f.server.Proxies }, "public-url": func() { s.PublicURL = f.server.PublicURL },
		"host": func() { s.Hosts = f.server.Hosts }, "metrics-open": func() { s.MetricsOpen = f.server.MetricsOpen },
		"webhook-loopback":  func() { o.WebhookLoopback = f.loopback },
		"allow-network-fs":  func() { o.Host.AllowNetworkFS = f.networkFS },
		"require-isolation": func() { o.Host.Require = f.require }, "quiet": func() { file.Quiet = f.quiet },
		"label": func() { o.Host.Labels = f.labels },
	} {
		if fl.Changed(flag) {
			take()
		}
	}
	if o.Host.Require != "" && o.Host.Require != "full" && o.Host.Require != "partial" {
		return o, usagef("require isolation %q: want full or partial", o.Host.Require)
	}
	if err := app.CheckLabels(o.Host.Labels); err != nil {
		return o, usagef("label: %v", err)
	}
	if slices.Contains(o.Host.Labels, app.LabelBrowser) {
		return o, usagef("label browser: a host that has a browser has this label by itself")
	}
	if c.store == "" || !fl.Changed("store") && o.Host.Store != "" {
		c.store = o.Host.Store // SLUICE_STORE is the default of a flag that was not given
	}
	level := slog.LevelInfo
	if file.Quiet {
		level = slog.LevelWarn
	}
	o.Host.Store, o.Host.CacheDir = c.store, cacheDir()
	o.Host.Log = slog.New(slog.NewTextHandler(c.errs, &slog.HandlerOptions{Level: level}))
	return o, nil
}

func (c serveCommands) doServe(ctx context.Context, o daemon.Options) (err error) {
	c.url = "" // serve is always local
	if err := c.requireNoHost(ctx, "sluice login prints a link to its dashboard"); err != nil {
		return err
	}
	d, err := daemon.Open(ctx, o)
	if err != nil {
		return c.explainServeError(err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := c.printAddresses(ctx, d); err != nil {
		return err
	}
	return d.Serve(ctx)
}

// An addressError reports that the host cannot listen on an address.
type addressError struct{ error }

func (e *addressError) Unwrap() error { return e.error }

// maxSocket is the longest path that a socket can have everywhere.
const maxSocket = 100

// explainServeError adds to the error of a host that cannot start what to do about it.
func (c *command) explainServeError(err error) error {
	var options *web.OptionsError
	dir, _ := app.DataDir(c.store)
	switch {
	case errors.As(err, &options):
		return usage{err}
	case errors.Is(err, syscall.EADDRINUSE):
		return &addressError{fmt.Errorf(
			"%w: another program listens there, perhaps another sluice; stop it, or name another address with --listen 127.0.0.1:PORT", err)}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return &addressError{fmt.Errorf("%w: this machine does not have that address; name one of its own with --listen",
			err)}
	case errors.Is(err, syscall.EINVAL) && len(filepath.Join(dir, daemon.SocketName)) > maxSocket:
		return &addressError{fmt.Errorf(
			"%w: the path of the data directory is too long for a socket; name a shorter one with --store badger:DIR", err)}
	case errors.Is(err, fs.ErrPermission):
		return &addressError{fmt.Errorf(
			"%w: this user may not; a port below 1024 needs a permission of its own, see docs/operating.md", err)}
	}
	return err
}

// printAddresses prints the address of the dashboard.
func (c serveCommands) printAddresses(ctx context.Context, d *daemon.Daemon) error {
	login, err := d.Server.LoginLink(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, login)
	}
	fmt.Fprintf(c.out, "Your dashboard, for the next %d minutes and once:\n\n  %s\n",
		int(time.Until(login.ExpiresAt).Round(time.Minute).Minutes()), login.URL)
	if login.PlainURL != "" {
		fmt.Fprintf(c.out, "  %s   (if the first does not open)\n", login.PlainURL)
	}
	fmt.Fprintf(c.out, "\nData is in %s. Ctrl-C stops.\n", d.Host.DataDir)
	return nil
}
