// Package daemon is sluice serve as a type: an open host with its service, the
// API, the dashboard, webhooks, metrics and traces behind a server. Wiring only;
// the command and the end-to-end tests open the same Daemon.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/dashboard"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/telemetry"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// Options configure a Daemon. The zero value serves the user's data directory on
// loopback.
type Options struct {
	Host    app.Options
	Service app.ServiceOptions
	// Server says where it listens; what the daemon itself provides (Store, Mount,
	// Ready, Metrics, Audit, Observe, ErrorPage, Socket) is set by Open.
	Server  web.ServerOptions
	Streams stream.Options
	// WebhookLoopback lets webhooks go to servers on this machine.
	WebhookLoopback bool
	// Alone is a host for one command of this process: it is reached by Dial only,
	// starts nothing by itself, and delivers nothing.
	Alone bool
}

// A Daemon is one host that is being served.
type Daemon struct {
	Host    *app.Host
	Service *app.Service
	Server  *web.Server
	API     *api.API
	UI      *dashboard.UI // nil when alone

	log     *slog.Logger
	spans   *telemetry.Spans
	hooks   *webhook.Hooks
	streams *stream.Hub
	stop    context.CancelFunc // of sweeping
	pipe    *pipe              // nil unless alone

	draining atomic.Bool // only reads are answered
}

// SocketName is the file in the data directory through which commands of the same
// user reach a running host.
const SocketName = "sluice.sock"

// sweepEvery is how often expired documents are deleted.
const sweepEvery = 10 * time.Minute

// Open opens everything and listens, but answers nothing before Serve.
func Open(ctx context.Context, o Options) (d *Daemon, err error) {
	if o.Host.Log == nil {
		o.Host.Log = slog.New(slog.DiscardHandler)
	}
	d = &Daemon{log: o.Host.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
			d = nil
		}
	}()
	version := app.ThisVersion()
	if o.Alone {
		d.pipe = newPipe()
		o.Server.Local, o.Server.Listen, o.Service.Idle = d.pipe, nil, true
	}
	metrics := telemetry.NewMetrics(version.Version, version.Revision)
	o.Host.Browser.Count = metrics.Browser
	if d.Host, err = app.Open(ctx, o.Host); err != nil {
		return d, err
	}
	if d.spans, err = telemetry.OpenSpans(ctx,
		telemetry.TraceOptions{Version: version.Version, HostID: d.Host.ID}); err != nil {
		return d, fmt.Errorf("open traces: %w", err)
	}
	o.Service.Store = telemetry.Measure(d.Host.Store, metrics)
	if d.spans.Recording() {
		o.Service.Spans = d.spans
	}
	o.Service.Ticked = func(t host.Tick) {
		if t.Status == "skipped" {
			metrics.Skip(t.Error)
			return
		}
		metrics.Tick(t.Status)
	}
	o.Service.Webhooks = d.webhooks(o, version.Version, metrics)
	if d.Service, err = d.Host.Service(ctx, o.Service); err != nil {
		return d, err
	}
	if d.hooks, err = webhook.Open(ctx, o.Service.Webhooks); err != nil {
		return d, err
	}
	o.Streams.About = d.about
	d.streams = stream.New(d.Host.Store, o.Streams)
	if err = d.listen(ctx, o, version.Version, metrics); err != nil {
		return d, err
	}
	d.ask(metrics)
	var sweeping context.Context
	sweeping, d.stop = context.WithCancel(context.Background())
	go d.sweep(sweeping)
	go d.lead(sweeping)
	return d, d.announce(ctx, o)
}

// announce tells the hosts that share the store where this one is reached.
func (d *Daemon) announce(ctx context.Context, o Options) error {
	if o.Alone {
		return nil
	}
	return d.Service.Announce(ctx, func(a *store.About) {
		if a.URL = o.Server.PublicURL; a.URL == "" && len(d.Server.Addresses()) > 0 {
			a.URL = "http://" + d.Address().String()
		}
		a.Labels = slices.Clone(o.Host.Labels)
		if d.Service.Info(ctx).Browser.Product != "" {
			a.Labels = append(a.Labels, app.LabelBrowser)
		}
	})
}

// leadEvery is how often a host that shares its store looks whether it leads, without a wake-up.
const leadEvery = time.Second

// lead delivers webhooks for as long as this host is the one of all that does.
func (d *Daemon) lead(ctx context.Context) {
	wake, stop := d.Service.Changed("")
	defer stop()
	if wake == nil {
		return // they are delivered since the start
	}
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	leads, failed := false, ""
	for {
		now, err := d.Service.Leads(ctx)
		switch {
		case err != nil:
			now = leads // nothing that it did is stored if another host leads
		case now && !leads:
			err = d.hooks.Begin(ctx)
			now = err == nil
		case !now && leads:
			d.hooks.Pause()
			err = d.Service.Yield(ctx)
		}
		if err != nil && ctx.Err() == nil && err.Error() != failed { // once, however often it is tried
			failed = err.Error()
			d.log.Error("lead_not_settled", "error", err)
		}
		if err == nil {
			failed = ""
		}
		leads = now
		select {
		case <-wake:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (d *Daemon) webhooks(o Options, version string, m *telemetry.Metrics) webhook.Options {
	addresses := &egress.Table{Own: egress.OwnAddresses()}
	var alive func() error
	members := store.MembersOf(d.Host.Store)
	if members != nil {
		alive = members.Alive
	}
	return webhook.Options{
		Store: d.Host.Store, Secrets: d.Host.SigningSecrets(), AllowLoopback: o.WebhookLoopback, Idle: o.Alone ||
			members != nil, Alive: alive, Changed: d.webhooksChanged, Version: version, Log: o.Host.Log, Observed: m.Delivery,
		Forbidden: func(a netip.Addr) string {
			if addresses.Public(a) {
				return ""
			}
			return "it is not a public address"
		},
		Disabled: func(ctx context.Context, id, because string) {
			if err := d.Service.Audit(host.As(ctx, host.Principal{ID: "host"}), "webhook.disabled", id, "done",
				map[string]string{"code": because}); err != nil {
				d.log.Error("audit_failed", "error", err)
			}
		},
	}
}

// webhooksChanged wakes when another host may have changed a webhook.
func (d *Daemon) webhooksChanged() (<-chan struct{}, func()) {
	return d.Service.Changed(store.Webhooks)
}

// deniedAnHour is how many refusals of one key and scope are written down in an
// hour: the access log has each.
const deniedAnHour = 10

// denied writes down that a key lacked a scope, without letting whoever
// holds the key fill the disk.
func (d *Daemon) denied() func(host.Principal, string) {
	each := access.NewLimiter("key", deniedAnHour, time.Hour, deniedAnHour, time.Now)
	return func(who host.Principal, scope string) {
		if each.Take(who.ID+" "+scope) != nil {
			return
		}
		if err := d.Service.Audit(host.As(context.Background(), who), "scope.denied", "", "refused",
			map[string]string{"code": scope}); err != nil {
			d.log.Error("audit_failed", "error", err)
		}
	}
}

// listen opens the sockets and mounts the routes.
func (d *Daemon) listen(ctx context.Context, o Options, version string, m *telemetry.Metrics) (err error) {
	so := o.Server
	so.Store, so.Log, so.Observe, so.Metrics = d.Host.Store, o.Host.Log, m.Request, m.Write
	so.Ready = d.ready
	if so.Now == nil {
		so.Now = func() time.Time { return store.Now(d.Host.Store) }
	}
	if !o.Alone { // nobody looks at the pages of such a host
		d.UI, err = dashboard.New(dashboard.Options{
			Host: d.Service, Store: d.Host.Store, Streams: d.streams, Webhooks: d.hooks, Version: version, Now: so.Now,
		})
		if err != nil {
			return err
		}
		so.ErrorPage = d.UI.ErrorPage
	}
	so.Audit = func(action, outcome, requestID, address string) {
		who := host.Principal{ID: access.Owner, Transport: access.UI, RequestID: requestID, Address: address}
		if err := d.Service.Audit(host.As(context.Background(), who), action, "", outcome, nil); err != nil {
			d.log.Error("audit_failed", "error", err)
		}
	}
	so.Denied, so.Assistants = d.denied(), d.Service
	if d.Host.DataDir != "" && d.pipe == nil {
		so.Socket = filepath.Join(d.Host.DataDir, SocketName)
	}
	so.Mount = append(so.Mount, func(app *web.App) { d.mount(ctx, app, o, version) })
	d.Server, err = web.OpenServer(ctx, so)
	return err
}

func (d *Daemon) mount(ctx context.Context, app *web.App, o Options, version string) {
	limits, browser := d.Service.Limits(), false
	if !o.Alone { // what is found out here takes a second: whether the jail holds, and which browser there is
		browser = d.Service.Info(ctx).Browser.Product != ""
	}
	rates := app.Access().Rates()
	perRun, perKey, all := d.streams.Limits()
	maps.Copy(limits, map[string]int64{
		"requestsPerSecond": int64(rates.KeyPerSecond), "requestBurst": int64(rates.KeyBurst),
		"loginsPerMinute": int64(rates.LoginsPerMinute), "tokenPostsPerMinute": int64(rates.TokenPostsPerMinute),
		"subscribersPerRun": int64(perRun), "subscribersPerKey": int64(perKey), "subscribers": int64(all),
		"connectionsPerAddress": int64(cmp.Or(o.Server.PerAddress, web.DefaultPerAddress)),
		"connections":           int64(cmp.Or(o.Server.Connections, web.DefaultConnections)),
	})
	d.API = api.New(api.Options{
		Host: d.Service, Store: d.Host.Store, Access: app.Access(), Streams: d.streams, Webhooks: d.hooks,
		AssistantGateway: d.Service,
		PublicURL:        o.Server.PublicURL, Version: version, Limits: limits, Browser: browser, Log: o.Host.Log,
	})
	d.API.Register(app)
	if d.UI != nil {
		d.UI.Register(app)
	}
}

// ready gives the checks of /readyz by name, nil for one that passes.
func (d *Daemon) ready(ctx context.Context) map[string]error {
	checks := map[string]error{"store": nil, "sandbox": nil, "scheduler": nil, "migrations": nil}
	for _, name := range d.Service.Ready(ctx) {
		checks[name] = errNotReady
	}
	if d.draining.Load() {
		checks["scheduler"] = errNotReady
	}
	return checks
}

var errNotReady = errors.New("not ready")

// about returns what a snapshot shows that is in no event.
func (d *Daemon) about(ctx context.Context, row store.Run) timeline.About {
	a := timeline.About{EngineVersion: app.ThisVersion().Version}
	if c, ok := d.Service.ConnectorOf(ctx, row); ok {
		a.ConnectorName, a.ConnectorVersion = c.Name, c.Version
	}
	if live, ok := d.Service.LiveRun(row.ID); ok {
		a.Live = &timeline.Live{Phase: live.Phase, PauseRequested: live.PauseRequested, CancelRequested: live.CancelRequested,
			HeldUp: live.HeldUp}
	}
	if row.Pruned {
		a.RetentionFloor = d.floor(ctx, row.ID)
	}
	return a
}

// floor returns one more than the terminal sequence of a log that was deleted.
func (d *Daemon) floor(ctx context.Context, id store.RunID) uint64 {
	head, err := d.Host.Store.RunHead(ctx, id)
	if err != nil {
		return 0
	}
	return head.Next
}

// ask tells the metrics where numbers of the moment are.
func (d *Daemon) ask(m *telemetry.Metrics) {
	from := telemetry.Sources{Open: d.Service.OpenQuestions, Subscribers: d.streams.Clients}
	from.Runs = func() telemetry.Runs {
		s := d.Service.RunStats()
		waiting := d.Service.OpenQuestions()
		return telemetry.Runs{Active: s.Accepted, Queued: s.Queued, Waiting: waiting, Paused: max(0, s.Idle-waiting)}
	}
	if sandbox := d.Host.Sandbox; sandbox != nil {
		from.Workers = func() (w telemetry.Workers) {
			w.Blank, w.Busy = sandbox.Workers()
			return w
		}
	}
	from.Space = func() (s telemetry.Space, known bool) {
		s.Used, s.Free, known = app.StoreSpace(d.Host.DataDir)
		return s, known && !d.Host.Remote
	}
	if store.MembersOf(d.Host.Store) != nil {
		from.Polling = func() bool { return store.Polling(d.Host.Store) != nil }
	}
	m.Ask(from)
}

func (d *Daemon) sweep(ctx context.Context) {
	every := time.NewTicker(sweepEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		leads, err := d.Service.Leads(ctx)
		if leads {
			err = errors.Join(d.Host.Store.Sweep(ctx), d.Service.PruneTimelines(ctx))
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("sweep_failed", "error", err)
		}
	}
}

// Serve answers until ctx ends. Then it answers reads only, and who follows a run sees
// its end, until runs have ended or their grace is over, and shuts down.
func (d *Daemon) Serve(ctx context.Context) error {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() {
		d.draining.Store(true)
		d.Server.Drain()
		d.Service.Close(serving)
		settling, cancel := context.WithTimeout(serving, closeWithin)
		d.streams.Settle(settling)
		cancel()
		d.streams.Close() // they hold up the server's own end
		end()
	})
	defer stop()
	removed, because := d.Service.Removed()
	if removed == nil {
		return d.Server.Serve(serving)
	}
	watching := make(chan error, 1)
	go func() {
		select {
		case <-removed:
			gone, cancel := context.WithCancel(serving)
			cancel() // nothing can be stored, so nothing is waited for
			d.Service.Close(gone)
			end()
			watching <- because()
		case <-serving.Done():
			watching <- nil
		}
	}()
	err := d.Server.Serve(serving)
	end()
	return errors.Join(<-watching, err)
}

// Dial connects to a host that is alone in this process, as its owner.
func (d *Daemon) Dial(ctx context.Context) (net.Conn, error) { return d.pipe.dial(ctx) }

// Address returns the first TCP address that is listened on.
func (d *Daemon) Address() net.Addr { return d.Server.Addresses()[0] }

// closeWithin bounds the end of what is not a run.
const closeWithin = 5 * time.Second

// Close ends what is left: streams, runs that go on beyond their grace, the store.
func (d *Daemon) Close() error {
	var errs []error
	if d.stop != nil {
		d.stop()
	}
	if d.Server != nil {
		errs = append(errs, d.Server.Shutdown())
	}
	if d.streams != nil {
		d.streams.Close()
	}
	if d.Service != nil {
		d.Service.Close(context.Background())
	}
	if d.hooks != nil {
		errs = append(errs, d.hooks.Close())
	}
	if d.spans != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		errs = append(errs, d.spans.Close(ctx))
		cancel()
	}
	if d.Host != nil {
		errs = append(errs, d.Host.Close())
	}
	return errors.Join(errs...)
}
