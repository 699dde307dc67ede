package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/web"
)

// configFile is the file of sluice serve --config, YAML or JSON. Absent members
// have their defaults; flags win over it.
type configFile struct {
	Store            string   `yaml:"store"`
	Listen           []string `yaml:"listen"`
	Expose           bool     `yaml:"expose"`
	TLS              tlsFiles `yaml:"tls"`
	Proxies          []string `yaml:"proxies"`
	PublicURL        string   `yaml:"public_url"`
	Hosts            []string `yaml:"hosts"`
	MetricsOpen      bool     `yaml:"metrics_open"`
	WebhookLoopback  bool     `yaml:"webhook_loopback"`
	AllowNetworkFS   bool     `yaml:"allow_network_fs"`
	RequireIsolation string   `yaml:"require_isolation"`
	RequireSignature bool     `yaml:"require_signature"`
	Quiet            bool     `yaml:"quiet"`
	ShortestInterval *span    `yaml:"shortest_interval"`
	Labels           []string `yaml:"labels"`

	Runs    runsConfig    `yaml:"runs"`
	Limits  limitsConfig  `yaml:"limits"`
	Browser browserConfig `yaml:"browser"`
	Budgets budgetsConfig `yaml:"budgets"`
	Pace    paceConfig    `yaml:"pace"`
	Files   filesConfig   `yaml:"files"`
	Copies  copiesConfig  `yaml:"copies"`
}

type tlsFiles struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

type runsConfig struct {
	AtOnce   int   `yaml:"at_once"`
	Accepted int   `yaml:"accepted"`
	Share    int   `yaml:"share"`
	Grace    *span `yaml:"grace"`
	Prespawn *int  `yaml:"prespawn"`
	Awake    *span `yaml:"awake"`
	Free     *int  `yaml:"free_memory"`
	Journal  struct {
		Bytes   int `yaml:"bytes"`
		Entries int `yaml:"entries"`
	} `yaml:"journal"`
}

// limitsConfig has the limits for clients.
type limitsConfig struct {
	RequestsPerSecond   int             `yaml:"requests_per_second"`
	RequestBurst        int             `yaml:"request_burst"`
	LoginsPerMinute     int             `yaml:"logins_per_minute"`
	TokenPostsPerMinute int             `yaml:"token_posts_per_minute"`
	Subscribers         subscribersPart `yaml:"subscribers"`
	Connections         connectionsPart `yaml:"connections"`
}

type subscribersPart struct {
	Run int `yaml:"run"`
	Key int `yaml:"key"`
	All int `yaml:"all"`
}

type connectionsPart struct {
	Address int `yaml:"address"`
	All     int `yaml:"all"`
}

// apply puts what is given into the options; the rest keep their defaults.
func (c limitsConfig) apply(o *daemon.Options) {
	r := &o.Server.Rates
	r.KeyPerSecond, r.KeyBurst = c.RequestsPerSecond, c.RequestBurst
	r.AddressPerSecond, r.AddressBurst = c.RequestsPerSecond, c.RequestBurst
	r.LoginsPerMinute, r.TokenPostsPerMinute = c.LoginsPerMinute, c.TokenPostsPerMinute
	o.Server.PerAddress, o.Server.Connections = c.Connections.Address, c.Connections.All
	o.Streams.PerRun, o.Streams.PerKey, o.Streams.Total = c.Subscribers.Run, c.Subscribers.Key, c.Subscribers.All
}

// browserConfig are the settings browser.* (browser.md); absent ones have their
// defaults.
type browserConfig struct {
	Path             string `yaml:"path"`
	MaxSurfaces      int    `yaml:"max_surfaces"`
	Linger           *span  `yaml:"linger"`
	ProbeInterval    *span  `yaml:"probe_interval"`
	UIDRange         []int  `yaml:"uid_range"`
	AllowNoSandbox   bool   `yaml:"allow_no_sandbox"`
	ActionsPerMinute int    `yaml:"actions_per_minute"`
}

// apply puts what is given into the options; the rest keep their defaults.
func (c browserConfig) apply(to *app.Options) {
	o := &to.Browser
	o.Path, o.MaxSurfaces, o.AllowNoSandbox, o.ActionsPerMinute = app.Home(c.Path), c.MaxSurfaces, c.AllowNoSandbox,
		c.ActionsPerMinute
	if c.Linger != nil {
		o.Linger = time.Duration(*c.Linger)
	}
	if c.ProbeInterval != nil {
		o.ProbeInterval = time.Duration(*c.ProbeInterval)
	}
	if len(c.UIDRange) == 2 {
		o.FirstUID, o.LastUID = c.UIDRange[0], c.UIDRange[1]
	}
}

func (c browserConfig) check() error {
	if r := c.UIDRange; len(r) != 0 && (len(r) != 2 || r[0] < 1000 || r[1] < r[0]) {
		return errors.New("browser.uid_range: want two uids of 1000 or more, the first and the last")
	}
	if d := c.Linger; d != nil && time.Duration(*d) > 5*time.Minute {
		return errors.New("browser.linger: want at most 5m")
	}
	if d := c.ProbeInterval; d != nil && time.Duration(*d) > 10*time.Second {
		return errors.New("browser.probe_interval: want at most 10s")
	}
	return nil
}

type budgetsConfig struct {
	Compute   *span `yaml:"compute"`
	Active    *span `yaml:"active"`
	Stall     *span `yaml:"stall"`
	OwnerWait *span `yaml:"owner_wait"`
	Total     *span `yaml:"total"`
	Prepare   *span `yaml:"prepare"`
	Pause     *span `yaml:"pause"`
}

// filesConfig bounds the files that records hold, in bytes; absent ones have their defaults.
type filesConfig struct {
	Bytes           int64 `yaml:"bytes"`
	RunBytes        int64 `yaml:"run_bytes"`
	ConnectionBytes int64 `yaml:"connection_bytes"`
}

func (c filesConfig) check() error {
	return checkBytes(map[string]int64{"files.bytes": c.Bytes, "files.run_bytes": c.RunBytes,
		"files.connection_bytes": c.ConnectionBytes})
}

// checkBytes bounds settings in bytes, by their names; 0 is one that is absent.
func checkBytes(settings map[string]int64) error {
	for name, n := range settings {
		if n < 0 || n > 1<<50 {
			return fmt.Errorf("%s: want 1 to %d", name, int64(1)<<50)
		}
	}
	return nil
}

// apply puts what is given into the quotas; the rest keep their defaults.
func (c filesConfig) apply(q *run.FileQuotas) {
	q.File, q.Run, q.Connection = cmp.Or(c.Bytes, q.File), cmp.Or(c.RunBytes, q.Run),
		cmp.Or(c.ConnectionBytes, q.Connection)
}

// copiesConfig bounds what is kept beside the store, in bytes; absent ones have their defaults.
type copiesConfig struct {
	QueryBytes     int64 `yaml:"query_bytes"`
	SearchBytes    int64 `yaml:"search_bytes"`
	AssistantBytes int64 `yaml:"assistant_bytes"`
}

func (c copiesConfig) check() error {
	return checkBytes(map[string]int64{"copies.query_bytes": c.QueryBytes, "copies.search_bytes": c.SearchBytes,
		"copies.assistant_bytes": c.AssistantBytes})
}

// apply puts what is given into the quotas; the rest keep their defaults.
func (c copiesConfig) apply(q *app.CopyQuotas) {
	q.Query, q.Search, q.Assistant = cmp.Or(c.QueryBytes, q.Query), cmp.Or(c.SearchBytes, q.Search),
		cmp.Or(c.AssistantBytes, q.Assistant)
}

type paceConfig struct {
	PerSecond   *float64 `yaml:"per_second"`
	Burst       *int     `yaml:"burst"`
	AtOnce      *int     `yaml:"at_once"`
	LongestStop *span    `yaml:"longest_stop"`
}

// A span is a time such as 30s, 6h or 2d.
type span time.Duration

// UnmarshalYAML reads a span above zero.
func (s *span) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if days, ok := parseDays(n.Value); ok {
		d, err = time.Duration(days)*24*time.Hour, nil
	}
	if err != nil || d <= 0 || d > 366*24*time.Hour {
		return fmt.Errorf("line %d: want a span such as 30s, 6h or 2d", n.Line)
	}
	*s = span(d)
	return nil
}

// maxConfig bounds the file, in bytes.
const maxConfig = abi.MiB

// readConfig reads a configuration. The error is usage and names what is wrong.
func readConfig(path string) (*configFile, error) {
	f, err := os.Open(app.Home(path))
	if err != nil {
		return nil, usagef("--config: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, usagef("--config: read %s: %w", path, err)
	}
	if len(text) > maxConfig {
		return nil, usagef("--config %s: it is larger than 1 MiB", path)
	}
	c := &configFile{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, usagef("--config %s: %s", path, plainYAML(err))
	}
	if err := d.Decode(&configFile{}); !errors.Is(err, io.EOF) {
		return nil, usagef("--config %s: it holds more than one document", path)
	}
	if err := c.check(); err != nil {
		return nil, usagef("--config %s: %w", path, err)
	}
	return c, nil
}

// plainYAML removes Go type names from an error.
func plainYAML(err error) string {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	var out []string
	for _, e := range wrong.Errors {
		if head, rest, ok := strings.Cut(e, "field "); ok {
			name, _, _ := strings.Cut(rest, " not found in type")
			e = head + "there is no setting " + name
		} else if head, _, ok := strings.Cut(e, " into cli."); ok {
			e = strings.Replace(head, "cannot unmarshal !!", "this setting does not take a ", 1)
		}
		out = append(out, e)
	}
	return strings.Join(out, "; ")
}

// check returns an error for values out of range.
func (c *configFile) check() error {
	for _, n := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"runs.at_once", c.Runs.AtOnce, 0, 64}, {"runs.accepted", c.Runs.Accepted, 0, 10_000},
		{"runs.prespawn", given(c.Runs.Prespawn), -1, 64}, {"runs.journal.bytes", c.Runs.Journal.Bytes, 0, 1 << 30},
		{"runs.journal.entries", c.Runs.Journal.Entries, 0, 100_000_000},
		{"runs.free_memory", given(c.Runs.Free), 0, 1 << 30}, {"runs.share", c.Runs.Share, 0, 10_000},
		{"limits.requests_per_second", c.Limits.RequestsPerSecond, 0, 100_000},
		{"limits.request_burst", c.Limits.RequestBurst, 0, 100_000},
		{"limits.logins_per_minute", c.Limits.LoginsPerMinute, 0, 1000},
		{"limits.token_posts_per_minute", c.Limits.TokenPostsPerMinute, 0, 1000},
		{"limits.subscribers.run", c.Limits.Subscribers.Run, 0, 100_000},
		{"limits.subscribers.key", c.Limits.Subscribers.Key, 0, 100_000},
		{"limits.subscribers.all", c.Limits.Subscribers.All, 0, 100_000},
		{"limits.connections.address", c.Limits.Connections.Address, 0, 100_000},
		{"limits.connections.all", c.Limits.Connections.All, 0, 100_000}, {"pace.burst", given(c.Pace.Burst), 0, 10_000},
		{"browser.max_surfaces", c.Browser.MaxSurfaces, 0, 64},
		{"browser.actions_per_minute", c.Browser.ActionsPerMinute, 0, 6000}, {"pace.at_once", given(c.Pace.AtOnce), 0, 1000},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("%s: want %d to %d", n.name, n.least, n.most)
		}
	}
	if err := errors.Join(c.Browser.check(), c.Files.check(), c.Copies.check()); err != nil {
		return err
	}
	if d := c.ShortestInterval; d != nil && (time.Duration(*d) < time.Second || time.Duration(*d) > 24*time.Hour) {
		return errors.New("shortest_interval: want 1s to 1d")
	}
	if p := c.Pace.PerSecond; p != nil && (*p <= 0 || *p > 10_000) {
		return errors.New("pace.per_second: want more than 0, at most 10000")
	}
	return nil
}

func given(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// options returns the settings of a host, with the defaults where there are none.
func (c *configFile) options() daemon.Options {
	h := app.DefaultOptions()
	c.Browser.apply(&h)
	c.Files.apply(&h.Files)
	c.Copies.apply(&h.Copies)
	h.Journal.Bytes, h.Journal.Entries = c.Runs.Journal.Bytes, c.Runs.Journal.Entries
	if a := c.Runs.Awake; a != nil {
		if h.Journal.Awake = time.Duration(*a); *a == 0 {
			h.Journal.Awake = -1
		}
	}
	if n := c.Runs.Free; n != nil {
		if h.Journal.FreeMemory = *n; *n == 0 {
			h.Journal.FreeMemory = -1
		}
	}
	h.Labels = c.Labels
	h.Store, h.Require, h.AllowNetworkFS, h.RequireSignature, h.Prespawn = c.Store, c.RequireIsolation, c.AllowNetworkFS,
		c.RequireSignature, prespawned
	if c.Runs.Prespawn != nil {
		h.Prespawn = *c.Runs.Prespawn
	}
	for _, b := range []struct {
		from *span
		to   *time.Duration
	}{
		{c.Budgets.Compute, &h.Budgets.Compute}, {c.Budgets.Active, &h.Budgets.Active}, {c.Budgets.Stall, &h.Budgets.Stall},
		{c.Budgets.OwnerWait, &h.Budgets.OwnerWait}, {c.Budgets.Total, &h.Budgets.Total},
		{c.Budgets.Prepare, &h.Budgets.Prepare}, {c.Budgets.Pause, &h.Budgets.Pause},
		{c.Pace.LongestStop, &h.RateLimit.LongestStop},
	} {
		if b.from != nil {
			*b.to = time.Duration(*b.from)
		}
	}
	if c.Pace.PerSecond != nil {
		h.RateLimit.PerSecond = *c.Pace.PerSecond
	}
	if n := given(c.Pace.Burst); n > 0 {
		h.RateLimit.Burst = n
	}
	if n := given(c.Pace.AtOnce); n > 0 {
		h.RateLimit.AtOnce = n
	}
	o := daemon.Options{Host: h, WebhookLoopback: c.WebhookLoopback, Server: web.ServerOptions{
		Listen: c.Listen, Expose: c.Expose, Cert: app.Home(c.TLS.Cert), Key: app.Home(c.TLS.Key), Proxies: c.Proxies,
		PublicURL: c.PublicURL, Hosts: c.Hosts, MetricsOpen: c.MetricsOpen,
	}}
	c.Limits.apply(&o)
	o.Service.Runs, o.Service.Accepted, o.Service.Share = c.Runs.AtOnce, c.Runs.Accepted, c.Runs.Share
	if c.ShortestInterval != nil {
		o.Service.ShortestInterval = time.Duration(*c.ShortestInterval)
	}
	if c.Runs.Grace != nil {
		o.Service.Grace = time.Duration(*c.Runs.Grace)
	}
	return o
}
