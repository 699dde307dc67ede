package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// authorizeFlags are the flags of sluice secret authorize.
type authorizeFlags struct {
	manifest, connection, config string
	hosts                        []string
	device, browser, yes         bool
}

// secretCommands are sluice secret and those below it.
type secretCommands struct{ *command }

func (c secretCommands) authorizeSecret() *cobra.Command {
	f := &authorizeFlags{}
	cmd := &cobra.Command{
		Use: "authorize CONNECTOR NAME", Short: "Let a server give out a secret's tokens",
		Long: `Asks the server that a connector's manifest names for an authorization (OAuth 2.0)
and stores what it gives, encrypted. Runs obtain access tokens with it; the
connector sees neither. You say yes or no at the server: with --device where it
says, by a code, also on another machine; with --browser in the browser of this one.`,
		Example: "  sluice secret authorize mailbox token\n  sluice secret authorize mailbox token --device --connection work",
		Args:    args(2, 2, "a connector and the name of one of its secrets"),
		RunE:    func(cmd *cobra.Command, a []string) error { return c.doAuthorize(cmd.Context(), a[0], a[1], f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.manifest, "manifest", "", "manifest `FILE` that wins over the module's own")
	fl.StringVar(&f.connection, "connection", "", "connection `ID` (default: the connector's name)")
	fl.StringVar(&f.config, "config", "", "the connection's configuration, `JSON|@FILE`")
	fl.StringArrayVar(&f.hosts, "allow-host", nil,
		"let the connection's tokens come from a server, `[http://]HOST[:PORT]`; repeatable")
	fl.BoolVar(&f.device, "device", false, "by a code that is entered elsewhere")
	fl.BoolVar(&f.browser, "browser", false, "in the browser of this machine")
	fl.BoolVar(&f.yes, "yes", false, "approve the servers of the manifest without asking")
	return cmd
}

func (c secretCommands) doAuthorize(ctx context.Context, connector, name string, f *authorizeFlags) error {
	if c.url == "" {
		if _, err := c.vault(ctx); err != nil {
			return err // before asking anything
		}
	}
	q := app.RunRequest{Connection: store.ConnectionID(f.connection)}
	config, err := valueOrFile("--config", f.config)
	if err != nil {
		return err
	}
	if config != "" {
		if _, err := strictjson.Parse([]byte(config), strictjson.ParseOptions{}); err != nil {
			return usagef("--config: want JSON, or @FILE with JSON: %w", err)
		}
		q.Config = json.RawMessage(config)
	}
	return c.withClient(ctx, app.Options{NoSandbox: true}, func(k *client.Client) error {
		return c.authorizeThrough(ctx, k, connector, name, q, f)
	})
}

// authorizeThrough asks for what is missing and has a host authorize the secret.
func (c secretCommands) authorizeThrough(ctx context.Context, to *client.Client, connector, name string,
	q app.RunRequest, f *authorizeFlags) (err error) {
	of := &runFlags{manifest: f.manifest}
	if q.Connector, err = c.runConnector(ctx, to, connector, of); err != nil {
		return err
	}
	if q.Connector.Wasm == nil {
		if _, err := connectorNamed(ctx, to, connector); err != nil {
			return err // a connection's name would load its connector, too
		}
	}
	o, err := app.Authorizable(q.Connector.Manifest, name)
	if err != nil {
		return err
	}
	flow, err := f.flow(o, to.Local())
	if err != nil {
		return err
	}
	c.explainAuthorization(q.Connector.Manifest, o, name)
	if q.Approved.Hosts, err = c.tokenHosts(ctx, to, q, o, f); err != nil {
		return err
	}
	n := host.NewAuthorization{Connector: q.Connector.Connector.Name, Secret: name, Flow: flow}
	if n.Overrides, err = overridesOf(q, of); err != nil {
		return err
	}
	a, err := to.Authorize(ctx, n)
	if err != nil {
		return err
	}
	defer cancelAuthorization(ctx, to, a)
	return c.authorize(ctx, to, a)
}

// flow returns the flow that the flags or the manifest choose. It prefers the browser's,
// in which there is no code to type that somebody else could ask for. That one redirects
// to the host's machine; here reports whether that is this one.
func (f *authorizeFlags) flow(o *abi.OAuth, here bool) (string, error) {
	want := ""
	switch {
	case f.device:
		want = abi.OAuthDevice
	case f.browser:
		want = abi.OAuthCode
	}
	switch {
	case f.device && f.browser:
		return "", usagef("--device and --browser contradict each other")
	case want != "" && !slices.Contains(o.Authorize, want):
		return "", usagef("the connector offers no such way; leave out --device and --browser")
	case !here && (want == abi.OAuthCode || !slices.Contains(o.Authorize, abi.OAuthDevice)):
		return "", usagef("in a browser a secret is authorized on the machine of the host, not over --url")
	case want != "":
		return want, nil
	case here && slices.Contains(o.Authorize, abi.OAuthCode):
		return abi.OAuthCode, nil
	}
	return abi.OAuthDevice, nil
}

func (c secretCommands) explainAuthorization(m *abi.Manifest, o *abi.OAuth, name string) {
	c.warnf("%s asks for an authorization, its secret %s:", displayName(m), abi.Clean(name))
	c.warnf("  from %s", abi.Clean(o.TokenURL))
	scopes := "whatever the server gives without asking for a scope"
	if len(o.Scopes) > 0 {
		scopes = strings.Join(o.Scopes, ", ")
	}
	c.warnf("  for %s", abi.Clean(scopes))
}

// tokenHosts returns those that the owner lets the tokens come from, as hosts are.
func (c secretCommands) tokenHosts(ctx context.Context, to *client.Client, q app.RunRequest, o *abi.OAuth,
	f *authorizeFlags) ([]string, error) {
	for _, text := range f.hosts {
		if err := app.CheckHost(text); err != nil {
			return nil, usagef("--allow-host: %w", err)
		}
	}
	known, err := knownConnection(ctx, to, connectionOf(q))
	if err != nil {
		return nil, err
	}
	wanted, err := app.WantedTokenHosts(o, slices.Concat(app.ApprovedBy(known.Bindings).Hosts, f.hosts))
	if err != nil || len(wanted) == 0 {
		return f.hosts, err
	}
	if !f.yes {
		t, ok := c.terminal()
		if !ok {
			return f.hosts, nil
		}
		t.printf("── The host would reach %s for it", abi.Clean(strings.Join(wanted, ", ")))
		if !t.choose("Let it? [yes/no] ") {
			return f.hosts, nil
		}
	}
	return slices.Concat(f.hosts, wanted), nil
}

// authorize shows the owner what to do and waits until it is done.
func (c secretCommands) authorize(ctx context.Context, to *client.Client, a host.Authorization) (err error) {
	c.warnf("  as the client %s", abi.Clean(a.ClientID))
	for shown := false; ; {
		if a, err = to.Authorization(ctx, a.AuthorizationID, a.Status); err != nil {
			return err
		}
		switch {
		case a.Status == host.AuthorizationStored:
			c.warnf("Stored the authorization of %s for %s.", abi.Clean(a.Secret), abi.Clean(a.ConnectionID))
			return nil
		case a.Status == host.AuthorizationFailed:
			return signatureError(abi.Clean(a.Error), abi.Clean(a.Message))
		case a.Status == host.AuthorizationWaiting && !shown:
			c.showPage(a)
			shown = true
		}
	}
}

func (c secretCommands) showPage(a host.Authorization) {
	if a.Code == "" {
		c.warnf("Open this page in a browser on this machine:")
		c.warnf("  %s", abi.Clean(a.URL))
		c.warnf("Waiting for the answer; Ctrl-C gives up.")
		return
	}
	c.warnf("Open this page, of %s, and enter the code there, if you asked for it:", abi.Clean(a.Server))
	c.warnf("  %s", abi.Clean(a.URL))
	c.warnf("  code %s", abi.Clean(a.Code))
	if a.ExpiresAt != nil {
		c.warnf("Waiting until %s; Ctrl-C gives up.", a.ExpiresAt.Local().Format(time.TimeOnly))
	}
}

// cancelAuthorization cancels an authorization. If that fails, the authorization expires by itself.
func cancelAuthorization(ctx context.Context, to *client.Client, a host.Authorization) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = to.CancelAuthorization(ctx, a.AuthorizationID)
}
