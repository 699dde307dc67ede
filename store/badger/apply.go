package badger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// apply applies a run's commit to g. If it returns an error, the caller rolls g back.
func (c *committer) apply(g *group, it *item) error {
	cm := it.commit
	now := c.s.opts.Now().UTC()
	head, err := c.admit(g, cm, now)
	if err != nil {
		return err
	}
	it.ack = store.Ack{FirstSequence: head.Next, RecordedAt: now}
	held := c.newFileRefs(g, cm)
	for _, b := range cm.Batches {
		changed, unchanged, err := c.ingest(g, cm.Lease, b, held, now)
		if err != nil {
			return err
		}
		it.ack.Changed += changed
		it.ack.Unchanged += unchanged
	}
	if err := held.end(); err != nil {
		return err
	}
	if err := c.applyState(g, cm); err != nil {
		return err
	}
	if err := c.applyQuestions(g, cm); err != nil {
		return err
	}
	for _, p := range cm.Journal {
		if err := g.replace(journalKey(cm.Lease.RunID, p.N), p.Data); err != nil {
			return err
		}
	}
	if cm.ConsumeGrant {
		if err := c.consumeGrant(g, cm, now); err != nil {
			return err
		}
	}
	if err := putEvents(g, cm, &head, now); err != nil {
		return err
	}
	if cm.Run != nil {
		if err := g.putJSON(key(kindRun, string(cm.Lease.RunID)), cm.Run); err != nil {
			return err
		}
	}
	if cm.End {
		if err := c.end(g, cm); err != nil {
			return err
		}
		head.Ended = true
	}
	putHead(g, cm.Lease.RunID, head)
	return nil
}

// admit checks all that may refuse a commit: the run has not ended, its lease is the current one, its grant is usable
// and the test hook agrees.
func (c *committer) admit(g *group, cm *store.Commit, now time.Time) (store.RunHead, error) {
	head, ok, err := getHead(g.get, cm.Lease.RunID)
	if err != nil {
		return head, err
	}
	if !ok {
		return head, fmt.Errorf("run %s: %w", cm.Lease.RunID, store.ErrNotFound)
	}
	if head.Ended {
		return head, store.ErrRunTerminal
	}
	if _, err := currentLease(g, cm.Lease); err != nil {
		return head, err
	}
	grant, err := c.grantOf(g, cm.Lease.ConnectionID)
	if err != nil {
		return head, err
	}
	return head, cm.Permits(grant, now, c.s.opts.FailState)
}

// grantOf returns the grant of a connection, or nil if it has none.
func (c *committer) grantOf(g *group, id store.ConnectionID) (*store.Grant, error) {
	if grant, cached := c.grants[id]; cached {
		return grant, nil
	}
	var conn store.Connection
	if _, err := g.getJSON(key(kindConnection, string(id)), &conn); err != nil {
		return nil, err
	}
	c.grants[id] = conn.Grant
	return conn.Grant, nil
}

func (c *committer) consumeGrant(g *group, cm *store.Commit, now time.Time) error {
	id := cm.Lease.ConnectionID
	var conn store.Connection
	ok, err := g.getJSON(key(kindConnection, string(id)), &conn)
	if err != nil || !ok || !cm.Consume(&conn, now) {
		return err
	}
	c.forgetGrant(g, id)
	return g.putJSON(key(kindConnection, string(id)), conn)
}

// forgetGrant drops the cached grant of a connection that g rewrites.
func (c *committer) forgetGrant(g *group, id store.ConnectionID) {
	delete(c.grants, id)
	g.undo = append(g.undo, func() { delete(c.grants, id) })
}

// applyState stages cursors, advances those of the connection and stores gaps.
func (c *committer) applyState(g *group, cm *store.Commit) error {
	lease := cm.Lease
	for _, st := range cm.Staged {
		if err := g.putJSON(key(kindStaged, string(lease.RunID), string(st.Stream)), st); err != nil {
			return err
		}
	}
	for _, st := range cm.Advance {
		if err := g.putJSON(stateKey(lease.ConnectionID, cm.Grant, st.Stream), st); err != nil {
			return &store.StateError{Stream: st.Stream, Err: err}
		}
	}
	for _, gap := range cm.Gaps {
		if err := g.putJSON(gapKey(lease.ConnectionID, cm.Grant, gap),
			store.KeptGap{DetailGap: gap, Ref: gap.Ref}); err != nil {
			return err
		}
	}
	return nil
}

// applyQuestions removes the question that was answered and stores the one that is asked.
func (c *committer) applyQuestions(g *group, cm *store.Commit) error {
	run := string(cm.Lease.RunID)
	if cm.Answered != "" {
		if err := g.remove(key(kindPending, run, cm.Answered)); err != nil {
			return err
		}
	}
	if cm.Ask != nil {
		q, err := c.s.questions.Seal(*cm.Ask)
		if err != nil {
			return err
		}
		return g.putJSON(key(kindPending, run, cm.Ask.ID), q)
	}
	return nil
}

// end releases the lease and removes everything pending of the run. The commit is a barrier, so all of it is in the
// engine or in this group.
func (c *committer) end(g *group, cm *store.Commit) error {
	g.terminal = true
	g.set(key(kindLease, string(cm.Lease.ConnectionID)), nil)
	run := string(cm.Lease.RunID)
	for _, kind := range []byte{kindPending, kindStaged, kindJournal} {
		prefix := key(kind, run, "")
		doomed := slices.Collect(c.base.keys(prefix, nil, false))
		for _, w := range g.writes {
			if bytes.HasPrefix(w.key, prefix) {
				doomed = append(doomed, w.key)
			}
		}
		for _, k := range doomed {
			if err := g.remove(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// putEvents appends the commit's events to the timeline.
func putEvents(g *group, cm *store.Commit, head *store.RunHead, now time.Time) error {
	for i := range cm.Events {
		text, err := cm.EncodeEvent(i, head.Next, now)
		if err != nil {
			return err
		}
		g.store(eventKey(cm.Lease.RunID, head.Next), text)
		head.Next++
	}
	if len(cm.Events) > 0 {
		g.wake[cm.Lease.RunID] = true
	}
	return nil
}

// getHead reads the head of a run's timeline for a group or a reader.
func getHead(get func([]byte) ([]byte, bool, error), id store.RunID) (store.RunHead, bool, error) {
	b, ok, err := get(key(kindRunHead, string(id)))
	if err != nil || !ok {
		return store.RunHead{}, false, err
	}
	if len(b) != 9 {
		return store.RunHead{}, false, store.Corrupt("head of run %s has %d bytes", id, len(b))
	}
	return store.RunHead{Next: binary.LittleEndian.Uint64(b), Ended: b[8] == 1}, true, nil
}

func putHead(g *group, id store.RunID, h store.RunHead) {
	v := binary.LittleEndian.AppendUint64(newValue(9), h.Next)
	flag := byte(0)
	if h.Ended {
		flag = 1
	}
	g.put(key(kindRunHead, string(id)), append(v, flag))
}
