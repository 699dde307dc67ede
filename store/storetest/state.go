package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

func state(l store.Lease, s store.Stream, cursor string) store.State {
	return store.State{Stream: s, Cursor: json.RawMessage(cursor), CommittedAt: epoch, RunID: l.RunID}
}

func exerciseStates(t *testing.T, d Driver) {
	t.Run("cursors are kept per connection and grant, and replaced", func(t *testing.T) {
		b := open(t, d)
		l, o := b.run("a"), b.run("o")
		b.put(&store.Commit{Lease: l, Advance: []store.State{state(l, "u", `null`), state(l, "s", `{"p":1}`)}})
		b.put(&store.Commit{Lease: l, Grant: "g", Advance: []store.State{state(l, "s", `{"p":2}`)}})
		b.put(&store.Commit{Lease: o, Advance: []store.State{state(o, "s", `{"p":3}`)}})
		b.put(&store.Commit{Lease: l, Advance: []store.State{state(l, "s", `{"p":4}`)}})
		b.reopen()
		for _, c := range []struct {
			conn  store.ConnectionID
			grant store.GrantID
			want  []store.State
		}{
			{"a", "", []store.State{state(l, "s", `{"p":4}`), state(l, "u", `null`)}},
			{"a", "g", []store.State{state(l, "s", `{"p":2}`)}},
			{"o", "", []store.State{state(o, "s", `{"p":3}`)}},
			{"o", "g", nil},
		} {
			got, err := b.s.States(t.Context(), c.conn, c.grant)
			b.must(err)
			equal(t, string(c.conn)+"/"+string(c.grant), got, c.want)
		}
	})
	t.Run("a staged cursor is the run's, and no state of the connection", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.put(&store.Commit{Lease: l, Staged: []store.State{state(l, "s", `1`)}})
		b.put(&store.Commit{Lease: l, Staged: []store.State{state(l, "s", `2`)}})
		b.reopen()
		staged, err := b.s.Staged(t.Context(), l.RunID)
		b.must(err)
		equal(t, "staged", staged, []store.State{state(l, "s", `2`)})
		states, err := b.s.States(t.Context(), "a", "")
		b.must(err)
		equal(t, "states", len(states), 0)
	})
	t.Run("a cursor of 256 KiB survives", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		want := state(l, "s", `"`+strings.Repeat("é", 128<<10)+`"`)
		b.put(&store.Commit{Lease: l, Advance: []store.State{want}})
		b.reopen()
		got, err := b.s.States(t.Context(), "a", "")
		b.must(err)
		equal(t, "states", got, []store.State{want})
	})
	t.Run("reset one, reset all, never under a run", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.put(&store.Commit{Lease: l, Advance: []store.State{state(l, "s", `1`), state(l, "u", `2`), state(l, "v", `3`)}})
		b.put(&store.Commit{Lease: l, Grant: "g", Advance: []store.State{state(l, "s", `4`)}})
		var active *store.ActiveError
		if err := b.s.ResetState(t.Context(), "a", "", ""); !errors.As(err, &active) || active.RunID != l.RunID {
			t.Fatalf("reset under a run: %v", err)
		}
		b.end(l)
		b.must(b.s.ResetState(t.Context(), "a", "", "s"))
		got, err := b.s.States(t.Context(), "a", "")
		b.must(err)
		equal(t, "states", got, []store.State{state(l, "u", `2`), state(l, "v", `3`)})
		b.must(b.s.ResetState(t.Context(), "a", "", ""))
		got, err = b.s.States(t.Context(), "a", "")
		b.must(err)
		equal(t, "states", len(got), 0)
		got, err = b.s.States(t.Context(), "a", "g")
		b.must(err)
		equal(t, "states of the grant", len(got), 1)
	})
}

func exerciseQuestions(t *testing.T, d Driver) {
	b := open(t, d)
	l, o := b.run("a"), b.run("o")
	expires := epoch.Add(time.Minute)
	ask := func(l store.Lease, id string) store.Interaction {
		q := store.Interaction{
			ID: id, RunID: l.RunID, Kind: "otp", Stream: "s", Message: "code sent to ···42",
			Schema: json.RawMessage(`{"type":"object"}`), OpenedAt: epoch, ExpiresAt: &expires,
		}
		b.put(&store.Commit{Lease: l, Ask: &q, Events: []store.Event{b.event(l, "run.interaction_required")}})
		return q
	}
	q1, q2, q3 := ask(l, "int_1"), ask(l, "int_2"), ask(o, "int_3")
	t.Run("open questions are listed by run and in all", func(t *testing.T) {
		got, err := b.s.Pending(t.Context(), l.RunID)
		b.must(err)
		equal(t, "pending", got, []store.Interaction{q1, q2})
		got, err = b.s.Pending(t.Context(), "")
		b.must(err)
		equal(t, "all pending", got, []store.Interaction{q1, q2, q3})
	})
	b.reopen()
	t.Run("questions that a process left behind are listed, with or without words", func(t *testing.T) {
		got, err := b.s.Pending(t.Context(), "")
		b.must(err)
		for i, q := range []*store.Interaction{&q1, &q2, &q3} {
			if len(got) == 3 && got[i].Message == "" {
				q.Message, q.Schema = "", nil
			}
		}
		equal(t, "all pending", got, []store.Interaction{q1, q2, q3})
	})
	t.Run("closing erases, and only what was closed", func(t *testing.T) {
		b.put(&store.Commit{Lease: l, Answered: "int_1", Events: []store.Event{b.event(l, "run.interaction_completed")}})
		got, err := b.s.Pending(t.Context(), l.RunID)
		b.must(err)
		equal(t, "pending", got, []store.Interaction{q2})
	})
}

func exerciseGaps(t *testing.T, d Driver) {
	b := open(t, d)
	l := b.run("a")
	gap := func(i int, parent store.Stream, ref, status string) store.DetailGap {
		return store.DetailGap{
			ID: "gap_" + ref + string(parent), Stream: "d", ParentStream: parent, Ref: ref, RecordKey: ref, Status: status,
			Locator: json.RawMessage(`{"u":1}`), Retryable: true, AttemptCount: i,
			CreatedAt: epoch.Add(time.Duration(i) * time.Second), UpdatedAt: epoch, RunID: l.RunID,
		}
	}
	g2, g1, g3 := gap(2, "p", "x", "pending"), gap(1, "q", "x", "pending"),
		gap(3, "", strings.Repeat("k", 1024), "pending")
	b.put(&store.Commit{Lease: l, Gaps: []store.DetailGap{g2, g1}})
	b.put(&store.Commit{Lease: l, Gaps: []store.DetailGap{g3}})
	b.put(&store.Commit{Lease: l, Grant: "g", Gaps: []store.DetailGap{gap(9, "p", "x", "pending")}})
	t.Run("keyed by parent and reference, oldest first", func(t *testing.T) {
		b.reopen()
		got, err := b.s.Gaps(t.Context(), "a", "", "pending")
		b.must(err)
		equal(t, "gaps", got, []store.DetailGap{g1, g2, g3})
	})
	t.Run("a gap put again replaces the former", func(t *testing.T) {
		g1.Status = "recovered"
		b.put(&store.Commit{Lease: l, Gaps: []store.DetailGap{g1}})
		got, err := b.s.Gaps(t.Context(), "a", "", "pending")
		b.must(err)
		equal(t, "pending", got, []store.DetailGap{g2, g3})
		got, err = b.s.Gaps(t.Context(), "a", "", "")
		b.must(err)
		equal(t, "all", got, []store.DetailGap{g1, g2, g3})
	})
	t.Run("as many gaps as a run may record", func(t *testing.T) {
		var receipts []*store.Receipt
		for i := range 250 {
			c := &store.Commit{Lease: l}
			for n := range 200 {
				n += 200 * i
				g := gap(n, "p", "m"+string(rune('a'+n%26))+time.Duration(n).String(), "recovered")
				g.Locator = nil
				c.Gaps = append(c.Gaps, g)
			}
			receipt, err := b.s.Submit(t.Context(), c)
			b.must(err)
			receipts = append(receipts, receipt)
		}
		for _, r := range receipts {
			_, err := r.Result()
			b.must(err)
		}
		got, err := b.s.Gaps(t.Context(), "a", "", "recovered")
		b.must(err)
		equal(t, "recovered", len(got), 50_001)
	})
}

func exerciseGrants(t *testing.T, d Driver) {
	with := func(t *testing.T, status string) (*bench, store.Lease) {
		b := open(t, d)
		b.must(b.s.PutConnection(t.Context(),
			store.Connection{ID: "a", Grant: &store.Grant{ID: "g", AccessMode: "single_use", Status: status}}))
		return b, b.run("a")
	}
	t.Run("consumed in the commit that ends the run", func(t *testing.T) {
		b, l := with(t, "active")
		end := b.ending(l)
		end.Grant, end.ConsumeGrant = "g", true
		b.put(end)
		b.reopen()
		c, err := b.s.Connection(t.Context(), "a")
		b.must(err)
		equal(t, "status", c.Grant.Status, "consumed")
	})
	t.Run("the owner's own grant is one too", func(t *testing.T) {
		b := open(t, d)
		own := store.Connection{ID: "a", Grant: &store.Grant{AccessMode: "continuous", Status: "active"}}
		b.must(b.s.PutConnection(t.Context(), own))
		l := b.run("a")
		b.put(&store.Commit{Lease: l, Batches: []*store.Batch{batch("s", up("k", `{}`))}})
		own.Grant.Status = "revoked"
		b.must(b.s.PutConnection(t.Context(), own))
		_, err := b.commit(&store.Commit{Lease: l, Batches: []*store.Batch{batch("s", up("k2", `{}`))}})
		var sink *store.SinkError
		if !errors.As(err, &sink) || sink.Code != "grant_revoked" {
			t.Fatalf("commit under a revoked grant: %v", err)
		}
		if _, err := b.commit(b.ending(l)); !errors.As(err, &sink) || sink.Code != "grant_revoked" {
			t.Fatalf("success under a revoked grant: %v", err)
		}
		b.put(failed(b.ending(l)))
	})
	t.Run("once, whoever ends first; what replaced the grant stays", func(t *testing.T) {
		for status, fault := range map[string]string{"consumed": "grant_consumed", "revoked": "grant_revoked"} {
			b, l := with(t, "active")
			b.must(b.s.PutConnection(t.Context(),
				store.Connection{ID: "a", Grant: &store.Grant{ID: "g", AccessMode: "single_use", Status: status}}))
			end := b.ending(l)
			end.Grant, end.ConsumeGrant = "g", true
			_, err := b.commit(end)
			var sink *store.SinkError
			if !errors.As(err, &sink) || sink.Code != fault {
				t.Fatalf("success with a %s grant: %v", status, err)
			}
			end = failed(b.ending(l))
			end.Grant = "g"
			b.put(end)
			c, err := b.s.Connection(t.Context(), "a")
			b.must(err)
			equal(t, "status", c.Grant.Status, status)
		}
		b, l := with(t, "active")
		b.must(b.s.PutConnection(t.Context(),
			store.Connection{ID: "a", Grant: &store.Grant{ID: "g", AccessMode: "continuous", Status: "active"}}))
		end := b.ending(l)
		end.Grant, end.ConsumeGrant = "g", true
		b.put(end)
		c, err := b.s.Connection(t.Context(), "a")
		b.must(err)
		equal(t, "status", c.Grant.Status, "active")
	})
	t.Run("a grant that became unusable refuses records and cursors, not the run's end", func(t *testing.T) {
		b, l := with(t, "active")
		b.put(&store.Commit{Lease: l, Grant: "g", Batches: []*store.Batch{batch("s", up("k", `{}`))}})
		b.must(b.s.PutConnection(t.Context(), store.Connection{ID: "a", Grant: &store.Grant{ID: "g", Status: "revoked"}}))
		for _, c := range []*store.Commit{
			{Lease: l, Grant: "g", Batches: []*store.Batch{batch("s", up("k2", `{}`))}},
			{Lease: l, Grant: "g", Advance: []store.State{state(l, "s", `1`)}},
		} {
			_, err := b.commit(c)
			var sink *store.SinkError
			if !errors.As(err, &sink) || sink.Code != "grant_revoked" {
				t.Fatalf("commit under a revoked grant: %v", err)
			}
		}
		equal(t, "content", b.content("a", "s"), map[string]string{"k": `{}`})
		b.end(l)
	})
}

// failed makes a commit that ends a run one that ends it without success.
func failed(c *store.Commit) *store.Commit {
	c.Run.Status, c.Events[0].Type = abi.Failed, "run.failed"
	return c
}
