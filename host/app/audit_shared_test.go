//go:build unix

package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/postgres"
)

// note writes entries into the log of a host, as another process of its owner does.
func note(t *testing.T, h *Host, targets ...string) {
	t.Helper()
	l, err := audit.Open(h.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		if err := l.Append(audit.Event{Action: audit.SecretSet, Target: target, Outcome: audit.Done}); err != nil {
			t.Fatal(err)
		}
	}
}

// entries reads the whole audit log at a host, page by page, oldest first.
func entries(t *testing.T, s *Service, q host.AuditQuery) (all []host.AuditEntry) {
	t.Helper()
	for {
		page, next, err := s.AuditEntries(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); next == "" {
			slices.Reverse(all)
			return all
		}
		q.Before = next
	}
}

func targets(all []host.AuditEntry, of string) string {
	var out []string
	for _, e := range all {
		if of == "" || e.HostID == of {
			out = append(out, e.Target)
		}
	}
	return strings.Join(out, " ")
}

// brokenCopies returns what is wrong with the copies of the logs, as the hosts say it.
func brokenCopies(t *testing.T, s *Service) (why []string) {
	t.Helper()
	all, err := s.AuditCopies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Broken < len(one.Breaks) || one.Broken > 0 != (len(one.Breaks) > 0) {
			t.Errorf("%+v", one)
		}
		for _, b := range one.Breaks {
			why = append(why, b.Why)
		}
	}
	return why
}

// At any host one sees what was done at all of them, in order, page by page and by filters, also what another
// process wrote and what a host did that is gone.
func TestAuditOfHosts(t *testing.T) {
	t.Parallel()
	url := postgres.New(t)
	a, atA := sharing(t, url)
	b, atB := sharing(t, url)
	note(t, a, "a1")
	if got := targets(entries(t, atA, host.AuditQuery{}), ""); got != "a1" {
		t.Fatalf("a host does not show what was done at it: %s", got)
	}
	byKey := host.As(t.Context(), host.Principal{ID: "key:one"})
	if err := atB.Audit(byKey, "key.created", "b1", "done", nil); err != nil {
		t.Fatal(err)
	}
	if got := targets(entries(t, atB, host.AuditQuery{}), ""); got != "a1 b1" {
		t.Fatalf("at b: %s", got)
	}
	for n := range 250 {
		note(t, a, fmt.Sprintf("many%d", n))
	}
	note(t, b, "b2")
	for _, h := range []*Host{a, b} {
		if err := h.copyAudit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*Service{atA, atB} {
		all := entries(t, s, host.AuditQuery{Limit: 7})
		if len(all) != 253 {
			t.Errorf("%d entries", len(all))
		}
		if got := targets(all, b.ID); got != "b1 b2" {
			t.Errorf("of b: %s", got)
		}
		prev := map[string]string{}
		for _, e := range all {
			if before := prev[e.HostID]; before != "" && before != e.PrevHash {
				t.Fatalf("%s of %s does not follow from the entry before it", e.Target, e.HostID)
			}
			prev[e.HostID] = e.Hash
		}
		if len(prev) != 2 {
			t.Errorf("entries of %d hosts", len(prev))
		}
	}
	if got := targets(entries(t, atA, host.AuditQuery{Actor: "key"}), ""); got != "b1" {
		t.Errorf("by a key: %s", got)
	}
	if why := brokenCopies(t, atB); len(why) > 0 {
		t.Errorf("%v", why)
	}
	all, err := atA.AuditCopies(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, one := range all {
		if one.Self != (one.HostID == a.ID) || one.Self && one.Entries != 251 || one.Pending != 0 || one.Log != 1 {
			t.Errorf("%+v", one)
		}
	}
	note(t, a, "last")
	atA.Close(t.Context())
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := targets(entries(t, atB, host.AuditQuery{Limit: 1000}), a.ID); !strings.HasSuffix(got, " last") {
		t.Errorf("a host that stopped did not leave its log: %s", got)
	}
}

// Whatever was done to the copies is told, at the host whose log it is and at another one. A mark that is gone is
// made anew there.
func TestAlteredCopies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		alter        func(t *testing.T, h *Host, docs []store.Document)
		there, other string // what the host says whose log it is, and then another one; "" is nothing
	}{
		"an entry was changed": {func(t *testing.T, h *Host, docs []store.Document) {
			put(t, h, docs[1].ID, strings.Replace(string(docs[1].Data), `"done"`, `"failed"`, 1))
		}, "not as it was written", "not as it was written"},
		"an entry is missing": {func(t *testing.T, h *Host, docs []store.Document) { put(t, h, docs[1].ID, "") },
			"is entry 3 and follows entry 1", "is entry 3 and follows entry 1"},
		"the last one is missing": {func(t *testing.T, h *Host, docs []store.Document) { put(t, h, docs[3].ID, "") },
			"ends with entry 3, its mark says 4", "ends with entry 3, its mark says 4"},
		"one was added": {func(t *testing.T, h *Host, docs []store.Document) {
			put(t, h, docs[3].ID[:len(docs[3].ID)-1]+"5", string(docs[3].Data))
		}, "place of another entry", "place of another entry"},
		"one is there twice": {func(t *testing.T, h *Host, docs []store.Document) {
			put(t, h, "2"+docs[0].ID[1:], string(docs[0].Data))
		}, "follows entry 4", "follows entry 4"},
		"a past was made up": {func(t *testing.T, h *Host, docs []store.Document) { forge(t, h, docs) },
			"of the log of this host is another one", "does not follow from the entry before"},
		"it is nobody's": {func(t *testing.T, h *Host, docs []store.Document) {
			put(t, h, strings.Replace(docs[0].ID, h.ID, "host_x", 1), string(docs[0].Data))
		}, "no mark of this log", "no mark of this log"},
		"the mark is gone": {func(t *testing.T, h *Host, docs []store.Document) {
			write(t, h, store.Write{Kind: store.AuditLogs, ID: auditLogID(h.ID, 1)})
		}, "", "no mark of this log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := postgres.New(t)
			a, atA := sharing(t, url)
			_, atB := sharing(t, url)
			note(t, a, "one", "two", "three", "four")
			if err := a.copyAudit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if why := slices.Concat(brokenCopies(t, atA), brokenCopies(t, atB)); len(why) > 0 {
				t.Fatalf("%v", why)
			}
			docs, err := a.Store.Documents(t.Context(), store.DocumentQuery{Kind: store.AuditEntries})
			if err != nil || len(docs) != 4 {
				t.Fatalf("%d entries, %v", len(docs), err)
			}
			test.alter(t, a, docs)
			if why := strings.Join(brokenCopies(t, atB), "; "); !strings.Contains(why, test.other) {
				t.Errorf("at another host: %s, want %s", why, test.other)
			}
			why := strings.Join(brokenCopies(t, atA), "; ")
			if !strings.Contains(why, test.there) || test.there == "" && why != "" {
				t.Errorf("at its host: %s, want %s", why, test.there)
			}
			if got := entries(t, atB, host.AuditQuery{}); len(got) > 5 {
				t.Errorf("%d entries are listed", len(got))
			}
		})
	}
}

func write(t *testing.T, h *Host, w store.Write) {
	t.Helper()
	if err := h.Store.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// put writes an entry past the host; "" removes it.
func put(t *testing.T, h *Host, id, data string) {
	t.Helper()
	w := store.Write{Kind: store.AuditEntries, ID: id}
	if data != "" {
		w.Data = json.RawMessage(data)
	}
	write(t, h, w)
}

// forge replaces all entries, and the mark, by those of another log that is whole in itself.
func forge(t *testing.T, h *Host, docs []store.Document) {
	t.Helper()
	dir := t.TempDir()
	l, err := audit.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range docs {
		if err := l.Append(audit.Event{Action: audit.SecretSet, Target: "forged", Outcome: audit.Done}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := l.After(t.Context(), audit.Head{}, len(docs))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range page[:len(page)-1] { // the last one stays, and with it the mark
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		put(t, h, docs[i].ID, string(text))
	}
}

// Entries are listed by their time, and those of one host in the order of its log, whatever its clock does.
func TestPlaceOfEntry(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	for _, c := range []struct {
		before, at, now, want int64
		why                   string
	}{
		{0, 1000, 2000, 1000, "it is listed by its time"},
		{900, 1000, 2000, 1000, "after the one before"},
		{1500, 1000, 2000, 1500, "a clock that was set back keeps the order"},
		{0, 9000, 2000, 2000, "a clock that is ahead is not ahead of other hosts"},
		{2500, 9000, 2000, 2500, "a server whose time is before that of the one before keeps the order"},
		{auditPlaceMax + 5, 1000, 2000, auditPlaceMax, "the name of an entry stays sorted"},
	} {
		if got := placeOfEntry(c.before, at(c.at), at(c.now)); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
}

// What somebody wrote into the database in the place of a mark does not hold up the log, and is told.
func TestForgedAuditMark(t *testing.T) {
	t.Parallel()
	for name, forged := range map[string]struct{ id, data string }{
		"no JSON of a mark":      {"00000001", `[]`},
		"a number too great":     {"99999999", `{"entries":1}`},
		"no number":              {"x", `{"entries":1}`},
		"a time that is none":    {"00000001", `{"entries":1,"place":-1}`},
		"another end":            {"00000001", `{"entries":1,"hash":"` + strings.Repeat("0", 64) + `","place":1}`},
		"an end that is to come": {"00000001", `{"entries":1000,"hash":"` + strings.Repeat("0", 64) + `","place":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := postgres.New(t)
			a, atA := sharing(t, url)
			_, atB := sharing(t, url)
			note(t, a, "one")
			if err := a.copyAudit(t.Context()); err != nil {
				t.Fatal(err)
			}
			write(t, a, store.Write{Kind: store.AuditLogs, ID: a.ID + "/" + forged.id, Data: json.RawMessage(forged.data)})
			note(t, a, "two")
			if err := a.copyAudit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := targets(entries(t, atB, host.AuditQuery{}), a.ID); !strings.HasSuffix(got, "two") {
				t.Errorf("%s", got)
			}
			if why := brokenCopies(t, atA); len(why) == 0 {
				t.Error("it is not told")
			}
		})
	}
}

// A log that took the place of another is copied beside it, and told.
func TestReplacedAuditLog(t *testing.T) {
	t.Parallel()
	url := postgres.New(t)
	a, atA := sharing(t, url)
	_, atB := sharing(t, url)
	note(t, a, "one", "two")
	if err := a.copyAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"audit", "witness/audit.head"} {
		if err := os.RemoveAll(filepath.Join(a.DataDir, path)); err != nil {
			t.Fatal(err)
		}
	}
	note(t, a, "three")
	if got := targets(entries(t, atA, host.AuditQuery{}), a.ID); got != "one two three" {
		t.Errorf("%s", got)
	}
	if why := brokenCopies(t, atB); len(why) != 1 || !strings.Contains(why[0], "another log was in the place") {
		t.Errorf("%v", why)
	}
}
