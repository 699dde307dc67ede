package app

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/store"
)

var _ host.System = (*Service)(nil)

// Info implements host.System (A230).
func (s *Service) Info(ctx context.Context) host.Info {
	h, this := s.host, ThisVersion()
	engine, version, ok := strings.Cut(path.Base(this.Engine), "@")
	if !ok {
		version = "unknown"
	}
	out := host.Info{
		Version: this.Version, Commit: this.Revision, StartedAt: h.started, Limits: h.limits(), Warnings: h.weaknesses(),
		Store: "memory", HostID: h.ID, BootEpoch: h.Epoch,
		Sandbox: host.SandboxInfo{Engine: engine, EngineVersion: version, Isolation: json.RawMessage("null")},
	}
	out.Browser = h.browserInfo(ctx)
	n := s.runs.Stats()
	out.Runs = host.RunsInfo{Running: n.Running, Queued: n.Queued, Standing: n.Standing, Accepted: n.Accepted, AtOnce: n.Runs, Limit: n.Limit}
	if h.DataDir != "" {
		out.Store = "badger:" + h.DataDir
	}
	found, err := h.Isolation(ctx)
	if err != nil {
		h.Options.Log.Error("isolation", "error", err)
		out.Warnings = append(out.Warnings, host.Warning{Code: "isolation", Message: "the self-test of the jail failed; the log says why, and so does sluice doctor"})
	} else if b, err := json.Marshal(found); err == nil {
		out.Sandbox.Isolation = b
		if found.Level != jail.LevelFull {
			out.Warnings = append(out.Warnings, host.Warning{Code: "isolation", Message: "the level of isolation is " + found.Level + ": sluice doctor names what is missing"})
		}
	}
	return out
}

// weaknesses are what the cheap part of a check-up finds.
func (h *Host) weaknesses() []host.Warning {
	c := &checkup{}
	c.versions()
	c.directory(h.DataDir)
	c.modes(h.DataDir)
	c.vault(h.DataDir)
	if d := damageOf(h.Store); d != nil {
		c.add("store", StateBad, "restore a backup with sluice restore", "read-only: %s", d.Code)
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

// Limits are those in force, by name.
func (s *Service) Limits() map[string]int64 { return s.host.limits() }

// limits are those in force, by the keys of security.md section 17 and
// runtime.md sections 19 and 23.
func (h *Host) limits() map[string]int64 {
	o := h.Options
	memory := o.MemoryBytes
	if memory == 0 {
		memory = 256 * abi.MiB
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	l, module := o.Limits, o.Module.Effective()
	return map[string]int64{
		"module.bytes": module.Bytes, "module.custom_bytes": module.CustomBytes, "module.manifest_bytes": module.ManifestBytes,
		"guest.memory":   int64(memory),
		"budget.compute": ms(o.Budgets.Compute), "budget.active": ms(o.Budgets.Active), "budget.stall": ms(o.Budgets.Stall),
		"budget.pause": ms(o.Budgets.Pause), "budget.owner_wait": ms(o.Budgets.OwnerWait), "budget.total": ms(o.Budgets.Total), "budget.prepare": ms(o.Budgets.Prepare),
		"limits.frame_bytes": int64(l.FrameBytes), "limits.record_bytes": int64(l.RecordBytes), "limits.cursor_bytes": int64(l.CursorBytes),
		"limits.text_bytes": int64(l.TextBytes), "limits.schema_bytes": int64(l.SchemaBytes), "limits.start_bytes": int64(l.StartBytes),
		"limits.flush_records": int64(l.FlushRecords), "limits.flush_bytes": int64(l.FlushBytes), "limits.records_per_run": l.RecordsPerRun,
		"limits.interactions_per_run": int64(l.InteractionsPerRun), "limits.assistance_open": int64(l.AssistanceOpen),
		"network.burst": int64(o.Pace.Burst), "network.concurrency_per_origin": int64(o.Pace.AtOnce), "network.retry_after_max": ms(o.Pace.LongestStop),
		"store.free_start": spaceStart, "store.free_stop": spaceStop,
	}
}

// Ready implements host.System (A228): store, sandbox, room for runs, and whatever AddCheck
// was called for, scheduler and migrations among them. It writes nothing, since
// anybody may ask.
func (s *Service) Ready(ctx context.Context) []string {
	failed := s.host.checks.failing()
	if !s.host.writable(ctx) {
		failed = append(failed, "store")
	}
	if _, err := s.host.Isolation(ctx); err != nil {
		failed = append(failed, "sandbox")
	}
	if s.runs != nil && s.runs.Full() != nil { // no schedule could start anything
		failed = append(failed, "runs")
	}
	slices.Sort(failed)
	return slices.Compact(failed)
}

// writable: the store answers, is not read-only, takes what runs collect, and has room
// to be closed in order.
func (h *Host) writable(ctx context.Context) bool {
	if damageOf(h.Store) != nil || store.Stalled(h.Store) != nil {
		return false
	}
	if free, known := freeSpace(h.DataDir); h.DataDir != "" && known && free < spaceStop {
		return false
	}
	_, err := h.Store.Leases(ctx)
	return err == nil
}

// Audit implements host.System (A168). An action that is none is an error. A
// detail that could be free text is left out.
func (s *Service) Audit(ctx context.Context, action, target, outcome string, details map[string]string) error {
	e := by(ctx, audit.Event{Action: audit.Action(action), Target: target, Outcome: audit.Outcome(outcome)})
	for key, value := range details {
		if d, ok := audit.Fact(key, value); ok {
			e.Details = append(e.Details, d)
		}
	}
	return s.host.Audit(e)
}

// The most entries of a page.
const maxAuditPage = 1000

// AuditEntries implements host.System (A224). A page may be short, or empty,
// although there are more: next says so.
func (s *Service) AuditEntries(ctx context.Context, q host.AuditQuery) ([]host.AuditEntry, uint64, error) {
	out := []host.AuditEntry{}
	if s.host.DataDir == "" {
		return out, 0, nil
	}
	if q.Limit < 0 || q.Limit > maxAuditPage {
		return nil, 0, invalid("limit", "range", "want 1 to %d", maxAuditPage)
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	l, err := audit.Open(s.host.DataDir)
	if err != nil {
		return nil, 0, err
	}
	page, next, err := l.Newest(ctx, audit.Filter{Action: q.Action, Actor: q.Actor, Target: q.Target, Since: q.From, Until: q.Until}, q.Before, q.Limit)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range page {
		out = append(out, host.AuditEntry{
			AuditID: e.ID, At: e.At.Time, Actor: e.Actor, Action: string(e.Action), Target: e.Target, Outcome: string(e.Outcome),
			RequestID: e.RequestID, Address: e.Address, PrevHash: e.PrevHash.String(), Hash: e.Hash.String(), Details: e.Details,
		})
	}
	return out, next, nil
}
