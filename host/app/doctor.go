package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// The states of a finding.
const (
	StateOK   = "ok"
	StateWeak = "weak" // works, with less than is possible
	StateBad  = "bad"  // runs will fail, or data is at risk
)

// A Finding is one line of a doctor's report.
type Finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // one thing to do; empty if ok
}

// A checkup collects findings.
type checkup struct {
	findings []Finding
}

func (c *checkup) add(check, state, remedy, format string, args ...any) {
	c.findings = append(c.findings, Finding{check, state, fmt.Sprintf(format, args...), remedy})
}

// Doctor checks everything that runs depend on and reports what is fine, weak or broken, each with a remedy. It
// changes nothing unless o.AcceptLoss is set. With deep it verifies the whole store.
func Doctor(ctx context.Context, o Options, deep bool) []Finding {
	c := &checkup{}
	restrictUmask()
	c.versions()
	h := newHost(newDirectory(o.settled()))
	url, err := h.locate()
	if err != nil {
		c.add("store", StateBad, "name a store with --store badger:DIR", "%v", err)
		return c.findings
	}
	if c.directory(h.DataDir) || h.Remote {
		c.store(ctx, h, url, deep)
		c.backup(h.directory)
		c.traces(h.DataDir)
	}
	c.modes(h.DataDir)
	c.vault(h.DataDir)
	c.engine(ctx, h)
	c.browser(ctx, h)
	if err := h.Close(); err != nil {
		c.add("store", StateBad, "run sluice doctor --deep", "closing failed: %v", err)
	}
	c.limits(h.Options)
	return c.findings
}

func (c *checkup) versions() {
	v := ThisVersion()
	c.add("version", StateOK, "", "sluice %s, ABI %s, %s, %s, %s", v.Version, v.ABI, v.Engine, v.Go, v.Platform)
	if v.Cgo {
		c.add("build", StateWeak, "build with CGO_ENABLED=0", "built with cgo, which leaves out Landlock")
	}
	if os.Geteuid() == 0 {
		c.add("user", StateWeak, "run as a user of its own unless workers cannot get uids otherwise",
			"running as root, which is used only to give workers uids and namespaces")
	}
}

// store opens the store, which verifies its witness, and reports its state.
func (c *checkup) store(ctx context.Context, h *Host, url string, deep bool) {
	err := c.open(h, url)
	var busy *store.BusyError
	var damage *store.DamageError
	switch {
	case errors.As(err, &busy):
		c.add("store", StateBad, "stop that process, or ask it instead", "%v", err)
		return
	case errors.As(err, &damage):
		c.add("store", StateBad, "restore a backup to another directory: sluice restore", "%v", err)
		return
	case err != nil:
		c.add("store", StateBad, "see the message; nothing was changed", "%v", err)
		return
	}
	if d := damageOf(h.Store); d != nil {
		c.add("store", StateBad,
			"restore a backup with sluice restore, or go on from what is left with sluice doctor --accept-loss", "read-only: %v",
			d)
	} else if h.Remote {
		c.add("store", StateOK, "", "opens")
	} else {
		c.add("store", StateOK, "", "opens, its witness agrees")
	}
	c.weaknesses(ctx, h.Store)
	if leases, err := h.Store.Leases(ctx); err == nil && len(leases) > 0 {
		c.add("runs", StateWeak, "any command but this one closes them", "%d runs were cut off", len(leases))
	}
	if !deep {
		return
	}
	if err := h.Store.Verify(ctx); err != nil {
		c.add("recount", StateBad, "restore a backup; export what can still be read first", "%v", err)
		return
	}
	c.add("recount", StateOK, "", "every record, counter and chain agrees")
}

// weaknesses reports what the store finds weak about the place where it keeps data.
func (c *checkup) weaknesses(ctx context.Context, s store.Store) {
	all, err := store.Weaknesses(ctx, s)
	if err != nil {
		c.add("store", StateBad, "see the message", "%v", err)
	}
	for _, w := range all {
		c.add("store", StateWeak, w.Remedy, "%s", w.Detail)
	}
}

// open opens the store. Before it accepts losses it determines what they are.
func (c *checkup) open(h *Host, url string) error {
	accept := h.Options.AcceptLoss
	h.Options.AcceptLoss = false
	if err := h.openURL(url); err != nil || !accept {
		return err
	}
	d := damageOf(h.Store)
	if d == nil {
		c.add("loss", StateOK, "", "nothing is lost")
		return nil
	}
	if err := h.Store.Close(); err != nil {
		return err
	}
	h.Options.AcceptLoss = true
	err := h.openURL(url)
	if err == nil {
		err = h.Audit(audit.Event{Action: audit.LossAccepted, Target: "store", Outcome: audit.Done,
			Details: []audit.Detail{audit.Code(d.Code)}})
	}
	if err == nil {
		c.add("loss", StateWeak, "run the connectors again; they fetch what is missing", "accepted: %v", d)
	}
	return err
}

// damageOf returns the damage that an opened store knows of, nil for none.
func damageOf(s store.Store) *store.DamageError {
	if d, ok := s.(interface{ Damage() *store.DamageError }); ok {
		return d.Damage()
	}
	return nil
}

// engine opens the sandbox and reports on its cache and isolation.
func (c *checkup) engine(ctx context.Context, h *Host) {
	h.Options.Prespawn = -1
	if _, err := os.Stat(h.DataDir); err != nil && h.Options.CacheDir == "" {
		h.Options.CacheDir, err = os.MkdirTemp("", "sluice-doctor-") // do not create a data directory
		if err != nil {
			c.add("engine", StateBad, "set TMPDIR to a directory that can be written", "%v", err)
			return
		}
		defer os.RemoveAll(h.Options.CacheDir)
	}
	if err := h.openSandbox(ctx); err != nil {
		c.add("engine", StateBad, "see the message; SLUICE_CACHE names another cache directory", "%v", err)
		return
	}
	cache, _ := h.cacheDir() // it succeeded in openSandbox
	c.add("engine", StateOK, "", "compiled modules in %s", cache)
	c.isolation(ctx, h)
}

// browser reports which browser runs get.
func (c *checkup) browser(ctx context.Context, h *Host) {
	b := h.Options.Browsers
	if b == nil {
		temp, err := os.MkdirTemp("", "sluice-doctor-") // leave no profiles and no data directory behind
		if err != nil {
			c.add("browser", StateBad, "set TMPDIR to a directory that can be written", "%v", err)
			return
		}
		defer os.RemoveAll(temp)
		b = newBrowsers(&directory{temp: temp, Options: h.Options})
		defer b.Close(ctx)
	}
	c.browsers(b.Facts(ctx))
}

// isolation runs the self-test and reports each layer.
func (c *checkup) isolation(ctx context.Context, h *Host) {
	report, err := h.Sandbox.Probe(ctx, h.DataDir)
	if err != nil && len(report.Layers) == 0 {
		c.add("isolation", StateBad, "run as a user who may start processes", "%v", err)
		return
	}
	for _, l := range report.Layers {
		if l.State == "ok" {
			c.add("jail."+l.Name, StateOK, "", "%s", l.Detail)
			continue
		}
		c.add("jail."+l.Name, StateWeak, l.Remedy, "%s", strings.TrimSuffix(l.Detail+": "+l.Cause, ": "))
	}
	state, remedy := StateOK, ""
	if report.Isolation.Level != "full" {
		state, remedy = StateWeak, "see the layers above"
	}
	c.add("isolation", state, remedy, "level %s", report.Isolation.Level)
	blocked := 0
	for _, a := range report.Attempts {
		if a.Blocked {
			blocked++
		}
	}
	if err != nil {
		c.add("self-test", StateBad, "run nothing you do not trust on this machine, and report this", "%v", err)
		return
	}
	c.add("self-test", StateOK, "", "%d of %d attempts to get out were blocked, all that should have been", blocked,
		len(report.Attempts))
}

// limits reports the limits in force.
func (c *checkup) limits(o Options) {
	memory := o.MemoryBytes
	if memory == 0 {
		memory = 256 * abi.MiB
	}
	c.add("bounds", StateOK, "", "guest memory %d MiB, module %d MiB, compute %s, active %s, owner %s, total %s",
		memory/abi.MiB, o.Module.Effective().Bytes/abi.MiB, o.Budgets.Compute, o.Budgets.Active,
		o.Budgets.OwnerWait, o.Budgets.Total)
}
