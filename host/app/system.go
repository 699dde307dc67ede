package app

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// system implements host.System.
type system struct {
	*directory
	guests   *guests
	bindings *bindings
	checks   *checks
	runs     *runs
}

var _ host.System = (*system)(nil)

// Info implements host.System.
func (sy *system) Info(ctx context.Context) host.Info {
	this := ThisVersion()
	engine, version, ok := strings.Cut(path.Base(this.Engine), "@")
	if !ok {
		version = "unknown"
	}
	out := host.Info{
		Version: this.Version, Commit: this.Revision, StartedAt: sy.started, Limits: sy.Limits(), Warnings: sy.weaknesses(),
		Store: "memory", HostID: sy.ID, BootEpoch: sy.Epoch,
		Sandbox: host.SandboxInfo{Engine: engine, EngineVersion: version, Isolation: json.RawMessage("null")},
	}
	out.Browser = sy.bindings.browserInfo(ctx)
	n := sy.runs.controller.Stats()
	out.Runs = host.RunsInfo{Running: n.Running, Queued: n.Queued, Idle: n.Idle, Accepted: n.Accepted,
		AtOnce: n.Runs, Limit: n.Limit}
	switch {
	case sy.Remote:
		out.Store = drivers.Shown(sy.Options.Store)
	case sy.DataDir != "":
		out.Store = "badger:" + sy.DataDir
	}
	found, err := sy.guests.Isolation(ctx)
	if err != nil {
		sy.Options.Log.Error("isolation", "error", err)
		out.Warnings = append(out.Warnings,
			host.Warning{Code: "isolation",
				Message: "the self-test of the jail failed; the log says why, and so does sluice doctor"})
	} else if b, err := json.Marshal(found); err == nil {
		out.Sandbox.Isolation = b
		if found.Level != jail.LevelFull {
			out.Warnings = append(out.Warnings,
				host.Warning{Code: "isolation", Message: "the level of isolation is " + found.Level +
					": sluice doctor names what is missing"})
		}
	}
	return out
}

// Limits returns the limits in force, by their names in the configuration.
func (sy *system) Limits() map[string]int64 {
	o := sy.Options
	memory := o.MemoryBytes
	if memory == 0 {
		memory = 256 * abi.MiB
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	l, module := o.Limits, o.Module.Effective()
	return map[string]int64{
		"module.bytes": module.Bytes, "module.custom_bytes": module.CustomBytes,
		"module.manifest_bytes": module.ManifestBytes, "guest.memory": int64(memory),
		"budget.compute": ms(o.Budgets.Compute), "budget.active": ms(o.Budgets.Active), "budget.stall": ms(o.Budgets.Stall),
		"budget.pause": ms(o.Budgets.Pause), "budget.owner_wait": ms(o.Budgets.OwnerWait),
		"budget.total": ms(o.Budgets.Total), "budget.prepare": ms(o.Budgets.Prepare),
		"limits.frame_bytes": int64(l.FrameBytes), "limits.record_bytes": int64(l.RecordBytes),
		"limits.cursor_bytes": int64(l.CursorBytes), "limits.text_bytes": int64(l.TextBytes),
		"limits.schema_bytes": int64(l.SchemaBytes), "limits.start_bytes": int64(l.StartBytes),
		"limits.flush_records": int64(l.FlushRecords), "limits.flush_bytes": int64(l.FlushBytes),
		"limits.records_per_run": l.RecordsPerRun, "limits.interactions_per_run": int64(l.InteractionsPerRun),
		"limits.assistance_open": int64(l.AssistanceOpen), "network.burst": int64(o.RateLimit.Burst),
		"network.concurrency_per_origin": int64(o.RateLimit.AtOnce), "network.retry_after_max": ms(o.RateLimit.LongestStop),
		"files.bytes": o.Files.File, "files.run_bytes": o.Files.Run, "files.connection_bytes": o.Files.Connection,
		"store.free_start": spaceStart, "store.free_stop": spaceStop,
	}
}

// Ready implements host.System. It checks the store, the sandbox, capacity for runs and the checks of AddCheck,
// and returns those that fail. It writes nothing, since anybody may call it.
func (sy *system) Ready(ctx context.Context) []string {
	failed := sy.checks.failing()
	if !sy.writable(ctx) {
		failed = append(failed, "store")
	}
	if _, err := sy.guests.Isolation(ctx); err != nil {
		failed = append(failed, "sandbox")
	}
	if sy.runs.controller != nil && sy.runs.controller.Full() != nil { // no scheduled run could start
		failed = append(failed, "runs")
	}
	slices.Sort(failed)
	return slices.Compact(failed)
}

// writable reports whether the store responds, is not read-only, accepts what runs collect, and has enough disk
// space left to be closed cleanly.
func (d *directory) writable(ctx context.Context) bool {
	if damageOf(d.Store) != nil || store.Stalled(d.Store) != nil {
		return false
	}
	if free, known := freeSpace(d.DataDir); d.DataDir != "" && known && free < spaceStop {
		return false
	}
	_, err := d.Store.Leases(ctx)
	return err == nil
}

// Audit implements host.System. An unknown action is an error. Details that could be free text are left out.
func (sy *system) Audit(ctx context.Context, action, target, outcome string, details map[string]string) error {
	e := by(ctx, audit.Event{Action: audit.Action(action), Target: target, Outcome: audit.Outcome(outcome)})
	for key, value := range details {
		if d, ok := audit.Fact(key, value); ok {
			e.Details = append(e.Details, d)
		}
	}
	return sy.directory.Audit(e)
}

// maxAuditPage bounds the entries of a page.
const maxAuditPage = 1000

// AuditEntries implements host.System.
func (sy *system) AuditEntries(ctx context.Context, q host.AuditQuery) ([]host.AuditEntry, string, error) {
	if sy.DataDir == "" {
		return []host.AuditEntry{}, "", nil
	}
	if q.Limit < 0 || q.Limit > maxAuditPage {
		return nil, "", invalid("limit", "range", "want 1 to %d", maxAuditPage)
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	f := audit.Filter{Action: q.Action, Actor: q.Actor, Target: q.Target, Since: q.From, Until: q.Until}
	if sy.sharesAudit() {
		return sy.sharedEntries(ctx, f, q.Before, q.Limit)
	}
	before := uint64(0)
	if q.Before != "" {
		var err error
		if before, err = strconv.ParseUint(q.Before, 10, 64); err != nil {
			return nil, "", host.Refuse("invalid_cursor", "the cursor is not one of this query; read from the beginning")
		}
	}
	l, err := audit.Open(sy.DataDir)
	if err != nil {
		return nil, "", err
	}
	page, next, err := l.Newest(ctx, f, before, q.Limit)
	if err != nil {
		return nil, "", err
	}
	out := make([]host.AuditEntry, 0, len(page))
	for _, e := range page {
		out = append(out, shownEntry(e))
	}
	if next == 0 {
		return out, "", nil
	}
	return out, strconv.FormatUint(next, 10), nil
}

func shownEntry(e audit.Entry) host.AuditEntry {
	return host.AuditEntry{
		AuditID: e.ID, At: e.At.Time, Actor: e.Actor, Action: string(e.Action), Target: e.Target, Outcome: string(e.Outcome),
		RequestID: e.RequestID, Address: e.Address, PrevHash: e.PrevHash.String(), Hash: e.Hash.String(), Details: e.Details,
	}
}

// checks are conditions of readiness that other parts add, by name.
type checks struct {
	mu    sync.Mutex // guards named
	named map[string]func() bool
}

// AddCheck makes readiness depend on ok, which must not block.
func (c *checks) AddCheck(name string, ok func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.named == nil {
		c.named = map[string]func() bool{}
	}
	c.named[name] = ok
}

// failing returns the names of the checks that fail.
func (c *checks) failing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for name, ok := range c.named {
		if !ok() {
			out = append(out, name)
		}
	}
	return out
}

// weaknesses returns the findings of Doctor's cheap checks.
func (sy *system) weaknesses() []host.Warning {
	c := &checkup{}
	c.versions()
	c.directory(sy.DataDir)
	c.modes(sy.DataDir)
	c.vault(sy.DataDir)
	if d := damageOf(sy.Store); d != nil {
		c.add("store", StateBad, "restore a backup with sluice restore", "read-only: %s", d.Code)
	}
	if err := sy.auditCopied.failing(); err != nil {
		c.add("audit_not_copied", StateWeak, "it is tried again; see to the database",
			"the audit log of this host has entries that other hosts do not show: %v", err)
	}
	if w := store.Polling(sy.Store); w != nil {
		c.add(host.WarningPolling, StateWeak, w.Remedy, "%s", w.Detail)
	}
	out := []host.Warning{}
	for _, f := range c.findings {
		if f.State == StateOK {
			continue
		}
		text := f.Detail
		if f.Remedy != "" {
			text += "; " + f.Remedy
		}
		out = append(out, host.Warning{Code: f.Check, Message: abi.Cut(abi.Clean(text), 1000)})
	}
	return out
}
