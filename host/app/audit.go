package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
)

// ErrNoAudit is returned for a store in memory, which keeps no audit log.
var ErrNoAudit = errors.New("a memory: store keeps no audit log; name another with --store badger:DIR")

// OpenAudit opens the audit log beside a store. It neither opens nor locks the store.
func OpenAudit(store string) (*audit.Log, error) {
	dir, err := DataDir(store)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, ErrNoAudit
	}
	return audit.Open(dir)
}

// Audit appends events to the audit log. For a store in memory it does nothing.
func (d *directory) Audit(events ...audit.Event) error {
	if d.DataDir == "" {
		return nil
	}
	l, err := audit.Open(d.DataDir)
	if err != nil {
		return err
	}
	return l.Append(events...)
}

// audited runs effect and records it in the audit log. If the log is not writable, effect does not run.
func (d *directory) audited(e audit.Event, effect func() error) error {
	if d.DataDir == "" {
		return effect()
	}
	l, err := audit.Open(d.DataDir)
	if err != nil {
		return err
	}
	return audited(l, e, effect)
}

func audited(l *audit.Log, e audit.Event, effect func() error) error {
	if err := l.Ready(); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	if err := l.Append(e); err != nil {
		return fmt.Errorf("%s of %s was done, but not written down: %w", e.Action, e.Target, err)
	}
	return nil
}

// openLogs prepares the logs that the host itself writes. No file is created before there is an entry.
func (d *directory) openLogs() error {
	if d.DataDir == "" {
		return nil
	}
	l, err := audit.Open(d.DataDir)
	if err != nil {
		return err
	}
	d.refusals, d.requests = audit.NewLimited(l), audit.OpenRequests(d.DataDir)
	return nil
}

func (d *directory) closeLogs() error {
	if d.requests == nil {
		return nil
	}
	return errors.Join(d.refusals.Close(), d.requests.Close())
}

// by sets the actor of an event to the principal of the context.
func by(ctx context.Context, e audit.Event) audit.Event {
	who := host.Who(ctx)
	e.Actor, e.RequestID, e.Address = who.ID, who.RequestID, who.Address
	return e
}
