package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// The bounds of AuditCopies.
const (
	maxAuditLogs   = 10_000 // logs in a store
	maxAuditBreaks = 20     // breaks of a log that are told one by one
)

// AuditCopies implements host.System. An entry is compared with the one before it, with the mark of its log, and
// with the file of this host if that wrote it.
func (sy *system) AuditCopies(ctx context.Context) ([]host.AuditCopy, error) {
	if !sy.sharesAudit() {
		return []host.AuditCopy{}, nil
	}
	sy.auditCopied.forget()
	if err := sy.copyAudit(ctx); err != nil {
		return nil, fmt.Errorf("copy audit log: %w", err)
	}
	l, err := audit.Open(sy.DataDir)
	if err != nil {
		return nil, err
	}
	v := copyChecks{self: sy.ID, logs: map[auditName]*copyCheck{}}
	if err := v.readMarks(ctx, sy.Store); err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(l.Entries(ctx, audit.Filter{}, 0))
	defer stop()
	v.file = &fileEntries{next: next}
	err = eachDocument(ctx, sy.Store, store.AuditEntries, func(doc store.Document) error {
		return v.check(ctx, sy.Store, readCopy(doc))
	})
	if err != nil {
		return nil, err
	}
	if err := v.checkBeyond(ctx, sy.Store); err != nil {
		return nil, err
	}
	head, err := l.Head()
	if err != nil {
		return nil, err
	}
	return v.result(head), nil
}

// eachDocument calls do with all documents of a kind in order.
func eachDocument(ctx context.Context, st store.Documents, kind store.Kind, do func(store.Document) error) error {
	for after := ""; ; {
		docs, err := st.Documents(ctx, store.DocumentQuery{Kind: kind, After: after, Limit: auditReads})
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		for _, doc := range docs {
			if err := do(doc); err != nil {
				return err
			}
		}
		if len(docs) < auditReads {
			return nil
		}
		after = docs[len(docs)-1].ID
	}
}

// An auditName is a log in the store.
type auditName struct {
	host string
	log  uint64
}

// copyChecks checks the entries of all logs, which come in any order among each other.
type copyChecks struct {
	self string
	logs map[auditName]*copyCheck
	own  auditName // the newest log of this host
	file *fileEntries
}

// A copyCheck is the state of one log.
type copyCheck struct {
	host.AuditCopy
	mark   auditMark
	last   audit.Head
	beyond uint64 // the last entry that the mark did not count
}

func (c *copyCheck) broken(e audit.Entry, format string, args ...any) {
	if c.Broken++; len(c.Breaks) < maxAuditBreaks {
		c.Breaks = append(c.Breaks, host.AuditBreak{AuditID: e.ID, Why: fmt.Sprintf(format, args...)})
	}
}

func (v *copyChecks) log(name auditName, m auditMark) *copyCheck {
	c := &copyCheck{AuditCopy: host.AuditCopy{HostID: name.host, Log: name.log}, mark: m}
	v.logs[name] = c
	return c
}

func (v *copyChecks) readMarks(ctx context.Context, st store.Documents) error {
	return eachDocument(ctx, st, store.AuditLogs, func(doc store.Document) error {
		id, m, err := readMark(doc)
		if len(v.logs) >= maxAuditLogs {
			return fmt.Errorf("the store has marks of more than %d audit logs", maxAuditLogs)
		}
		name := auditName{shownID(id), m.log}
		c := v.log(name, m)
		if err != nil {
			c.broken(audit.Entry{}, "its mark, which says how much was copied, is not as it was written")
		}
		if err == nil && name.host == v.self {
			v.own = name
		}
		if m.log > 1 {
			c.broken(audit.Entry{}, "another log was in the place of the one before, which this one does not continue")
		}
		return nil
	})
}

// check checks the next entry of the store.
func (v *copyChecks) check(ctx context.Context, st store.Documents, e copiedEntry) error {
	name := auditName{e.host, e.log}
	c := v.logs[name]
	if c == nil {
		_, err := st.Document(ctx, store.AuditLogs, auditLogID(e.host, e.log))
		switch {
		case err == nil:
			return nil // the log was begun meanwhile
		case !errors.Is(err, store.ErrNotFound):
			return err
		case len(v.logs) >= maxAuditLogs:
			return fmt.Errorf("the store has entries of more than %d audit logs", maxAuditLogs)
		}
		c = v.log(name, auditMark{Head: audit.Head{Entries: ^uint64(0)}})
		c.broken(e.Entry, "the store has no mark of this log")
	}
	switch {
	case e.err != nil:
		c.broken(e.Entry, "an entry is not as it was written: %v", e.err)
		return nil
	case e.Sequence > c.mark.Entries: // it was copied meanwhile, as the mark then says
		c.beyond = max(c.beyond, e.Sequence)
		return nil
	}
	c.chain(e.Entry)
	if name == v.own {
		own, err := v.file.at(e.Sequence)
		switch {
		case err != nil:
			return err
		case own == nil:
			c.broken(e.Entry, "the log of this host has no entry %d", e.Sequence)
		case own.Hash != e.Hash:
			c.broken(e.Entry, "entry %d of the log of this host is another one", e.Sequence)
		}
	}
	return nil
}

// checkBeyond compares entries that the marks did not count with the marks as they are now.
func (v *copyChecks) checkBeyond(ctx context.Context, st store.Documents) error {
	for name, c := range v.logs {
		if c.beyond == 0 {
			continue
		}
		doc, err := st.Document(ctx, store.AuditLogs, auditLogID(name.host, name.log))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if _, m, err := readMark(doc); err != nil || m.Entries < c.beyond {
			c.broken(audit.Entry{}, "there is an entry %d, which its mark does not count", c.beyond)
		}
	}
	return nil
}

// chain compares an entry with the one before it, and with the mark.
func (c *copyCheck) chain(e audit.Entry) {
	switch {
	case e.Sequence != c.last.Entries+1:
		c.broken(e, "it is entry %d and follows entry %d", e.Sequence, c.last.Entries)
	case e.PrevHash != c.last.Hash:
		c.broken(e, "it does not follow from the entry before it")
	case e.Action == audit.Damaged:
		c.broken(e, "the log was found damaged when this was written")
	case e.Sequence == c.mark.Entries && e.Hash != c.mark.Hash:
		c.broken(e, "it is not the one that the mark of its log knows")
	}
	c.Entries++
	c.last = audit.Head{Entries: e.Sequence, Hash: e.Hash}
}

// result returns what was found. head is the end of the log of this host.
func (v *copyChecks) result(head audit.Head) []host.AuditCopy {
	out := make([]host.AuditCopy, 0, len(v.logs))
	for name, c := range v.logs {
		if m := c.mark.Entries; m != ^uint64(0) && c.last.Entries < m {
			c.broken(audit.Entry{}, "the copy ends with entry %d, its mark says %d", c.last.Entries, m)
		}
		if name == v.own {
			c.Self, c.Pending = true, head.Entries-min(head.Entries, c.last.Entries)
		}
		c.HeadHash = c.last.Hash.String()
		out = append(out, c.AuditCopy)
	}
	slices.SortFunc(out, func(a, b host.AuditCopy) int {
		return cmp.Or(cmp.Compare(a.HostID, b.HostID), cmp.Compare(a.Log, b.Log))
	})
	return out
}

// fileEntries reads the log of this host beside its copy.
type fileEntries struct {
	next func() (audit.Entry, error, bool)
	now  *audit.Entry
	over bool
}

// at returns an entry, nil if there is none. Sequences grow from call to call. Invalid lines are skipped, since
// audit.Verify finds them.
func (f *fileEntries) at(sequence uint64) (*audit.Entry, error) {
	for !f.over && (f.now == nil || f.now.Sequence < sequence) {
		e, err, ok := f.next()
		var broken *audit.BrokenError
		switch {
		case !ok:
			f.over = true
		case errors.As(err, &broken):
		case err != nil:
			return nil, err
		default:
			f.now = &e
		}
	}
	if f.now == nil || f.now.Sequence != sequence {
		return nil, nil
	}
	return f.now, nil
}
