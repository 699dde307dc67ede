package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// Hosts that share a store copy their audit logs into it, so that each shows those of all. The file of a host
// stays the log: other processes append to it, and an effect waits for it alone. A copy follows in order, behind
// a high-water mark that is written in the same commit as the entries.

// Times and limits of copies.
const (
	auditLook     = 500 * time.Millisecond // until what any process wrote to the log is copied
	auditRecheck  = time.Minute            // until the mark in the store is read again, although nothing is new
	auditCopyWait = 2 * time.Second        // for a copy that somebody waits for
	auditBatch    = 100                    // entries of one commit
	auditLooked   = 10_000                 // entries read for one page
	auditReads    = 1000                   // entries read at once
	auditLogBits  = 24                     // of the number of a log
	auditPlaceMax = 9_999_999_999_999      // in ms since 1970
)

// auditCopied is what is known of the copy of this host's log.
type auditCopied struct {
	mu   sync.Mutex // guards what follows
	head audit.Head // up to which all is copied, as of at
	at   time.Time
	err  error // of the last try
}

func (a *auditCopied) failing() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// recent reports whether all up to head was in the store a moment ago.
func (a *auditCopied) recent(head audit.Head) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err == nil && a.head == head && time.Since(a.at) < auditRecheck
}

// forget has the mark in the store be read again.
func (a *auditCopied) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Time{}
}

// tried records the result of a copy, and reports whether it differs from the one before.
func (a *auditCopied) tried(head audit.Head, err error) (news bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	news = (a.err == nil) != (err == nil)
	if a.err = err; err == nil {
		a.head, a.at = head, time.Now()
	}
	return news
}

// An auditMark is a document of kind store.AuditLogs: how much of a host's log is in the store.
type auditMark struct {
	audit.Head
	Place int64 `json:"place"` // of the last entry

	log      uint64 // counts the logs of the host
	revision uint64
}

func auditLogID(host string, log uint64) string { return fmt.Sprintf("%s/%08d", host, log) }

// auditEntryID sorts by place, which is a time in milliseconds.
func auditEntryID(place int64, host string, log, sequence uint64) string {
	return fmt.Sprintf("%013d/%s/%08d/%020d", place, host, log, sequence)
}

// sharesAudit reports whether the audit log of this host is copied into the store.
func (d *directory) sharesAudit() bool {
	return d.DataDir != "" && d.ID != "" && store.MembersOf(d.Store) != nil && !d.copied && !d.filling
}

// watchAudit copies the audit log until ctx ends.
func (d *directory) watchAudit(ctx context.Context) {
	look := time.NewTicker(auditLook)
	defer look.Stop()
	for {
		if err := d.copyAudit(ctx); err != nil && errors.Is(err, store.ErrStopped) {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// lastCopyAudit copies what the host wrote while it ended. What it has no time for follows at the next start.
func (d *directory) lastCopyAudit() {
	if !d.sharesAudit() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditCopyWait)
	defer cancel()
	_ = d.copyAudit(ctx) // it says so in the log
}

// copyAudit brings the copy of this host's audit log up to date.
func (d *directory) copyAudit(ctx context.Context) error {
	l, err := audit.Open(d.DataDir)
	if err != nil {
		return err
	}
	head, err := l.Head()
	if err == nil && d.auditCopied.recent(head) {
		return nil
	}
	for more := true; more && err == nil; {
		head, more, err = d.copySomeAudit(ctx, l)
	}
	if !errors.Is(ctx.Err(), context.Canceled) && d.auditCopied.tried(head, err) {
		if err != nil && !errors.Is(err, store.ErrStopped) {
			d.Options.Log.Error("audit_log_not_copied", "error", err)
		} else if err == nil {
			d.Options.Log.Info("audit_log_copied")
		}
	}
	return err
}

// copySomeAudit copies up to auditBatch entries. It returns the mark, and whether there may be more to do.
func (d *directory) copySomeAudit(ctx context.Context, l *audit.Log) (audit.Head, bool, error) {
	m, next, err := d.auditMark(ctx)
	if err == nil && next >= 1<<auditLogBits {
		err = fmt.Errorf("the store has marks of too many audit logs of host %s", d.ID)
	}
	if err != nil {
		return audit.Head{}, false, err
	}
	entries, err := l.After(ctx, m.Head, auditBatch)
	switch {
	case errors.Is(err, audit.ErrOtherLog):
		m = auditMark{log: next}
		d.Options.Log.Error("audit_log_replaced", "log", m.log, "next", "sluice audit verify tells of it")
	case err != nil || len(entries) == 0:
		return m.Head, false, err
	}
	now := store.Now(d.Store)
	writes := make([]store.Write, 0, len(entries)+1)
	for _, e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return m.Head, false, err
		}
		m.Place = placeOfEntry(m.Place, e.At.Time, now)
		m.Head = audit.Head{Entries: e.Sequence, Hash: e.Hash}
		writes = append(writes, store.Write{Kind: store.AuditEntries, ID: auditEntryID(m.Place, d.ID, m.log, e.Sequence),
			Data: text})
	}
	text, err := json.Marshal(m)
	if err != nil {
		return m.Head, false, err
	}
	writes = append(writes, store.Write{Kind: store.AuditLogs, ID: auditLogID(d.ID, m.log), Data: text, If: &m.revision})
	err = d.Store.Write(ctx, writes...)
	var other *store.ConflictError
	if errors.As(err, &other) { // it was copied meanwhile
		err = nil
	}
	return m.Head, true, err
}

// placeOfEntry returns the place of an entry: its time, but never before that of the entry before it, whatever the
// clock of this host did, and never ahead of the server's time, at which other hosts' entries come.
func placeOfEntry(before int64, at, now time.Time) int64 {
	return min(max(before, min(at.UnixMilli(), now.UnixMilli())), auditPlaceMax)
}

// auditMark returns the mark of this host's newest log, and the number of the next one. Marks that are not as they
// were written are passed over, since they must not hold up the log.
func (d *directory) auditMark(ctx context.Context) (m auditMark, next uint64, err error) {
	docs, err := d.Store.Documents(ctx,
		store.DocumentQuery{Kind: store.AuditLogs, Prefix: d.ID + "/", Descending: true, Limit: auditReads})
	m, next = auditMark{log: 1}, 1
	found := false
	for _, doc := range docs {
		_, one, bad := readMark(doc)
		next = max(next, one.log+1)
		if bad == nil && !found {
			m, found = one, true
		}
	}
	if !found {
		m.log = next
	}
	return m, next, err
}

// readMark decodes a document of kind store.AuditLogs, which anybody with access to the database may have written.
func readMark(doc store.Document) (hostID string, m auditMark, err error) {
	hostID, number, _ := strings.Cut(doc.ID, "/")
	log, err := strconv.ParseUint(number, 10, auditLogBits)
	if err == nil {
		err = json.Unmarshal(doc.Data, &m)
	} else {
		log = 0
	}
	if err == nil && (m.Place < 0 || m.Place > auditPlaceMax) {
		err = errors.New("its time cannot be")
	}
	m.log, m.revision = log, doc.Revision
	if err != nil {
		err = fmt.Errorf("read mark of the audit log of host %s: %w", shownID(hostID), err)
	}
	return hostID, m, err
}

func shownID(id string) string { return abi.Cut(abi.Clean(id), 64) }

// A copiedEntry is a document of kind store.AuditEntries. err says why it is not as it was written.
type copiedEntry struct {
	audit.Entry
	host string
	log  uint64
	err  error
}

func readCopy(doc store.Document) copiedEntry {
	parts := strings.Split(doc.ID, "/")
	if len(parts) != 4 {
		return copiedEntry{err: fmt.Errorf("%s is no name of an entry", shownID(doc.ID))}
	}
	out := copiedEntry{host: shownID(parts[1])}
	out.log, out.err = strconv.ParseUint(parts[2], 10, 64)
	if out.err == nil {
		out.Entry, out.err = audit.Decode(doc.Data)
	}
	if out.err == nil && strconv.FormatUint(out.Sequence, 10) != strings.TrimLeft(parts[3], "0") {
		out.err = errors.New("it is in the place of another entry")
	}
	return out
}

// sharedEntries lists the entries of all hosts, newest first. It reads a bounded number of entries, and skips
// those that are not as they were written; AuditCopies finds them.
func (d *directory) sharedEntries(ctx context.Context, f audit.Filter, before string, limit int) ([]host.AuditEntry,
	string, error) {
	waiting, cancel := context.WithTimeout(ctx, auditCopyWait)
	_ = d.copyAudit(waiting) // if it fails, a warning of the host says so
	cancel()
	out := []host.AuditEntry{}
	reads := min(limit+1, auditReads)
	for looked := 0; looked < auditLooked; {
		docs, err := d.Store.Documents(ctx,
			store.DocumentQuery{Kind: store.AuditEntries, After: before, Descending: true, Limit: reads})
		if err != nil {
			return nil, "", fmt.Errorf("list audit log: %w", err)
		}
		for _, doc := range docs {
			looked++
			e := readCopy(doc)
			if e.err != nil || !f.Match(&e.Entry) {
				continue
			}
			if len(out) == limit {
				return out, before, nil
			}
			one := shownEntry(e.Entry)
			one.HostID, before = e.host, doc.ID
			out = append(out, one)
		}
		if len(docs) < reads {
			return out, "", nil
		}
		before, reads = docs[len(docs)-1].ID, auditReads
	}
	return out, before, nil
}
