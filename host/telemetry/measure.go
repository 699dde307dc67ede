package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Measured store counts what runs commit: records, batches, questions, ends, and the duration of
// commits. Runs use it as their store; everything else may use the underlying one.
type Measured struct {
	store.Store
	m  *Metrics
	wg sync.WaitGroup // commits under way
}

// Measure wraps st so that m counts its commits.
func Measure(st store.Store, m *Metrics) *Measured { return &Measured{Store: st, m: m} }

// PerStream reports what the underlying store reports.
func (s *Measured) PerStream() bool {
	p, ok := s.Store.(interface{ PerStream() bool })
	return ok && p.PerStream()
}

// FilesBeneath returns the files of the underlying store.
func (s *Measured) FilesBeneath() (store.Files, error) { return store.FilesOf(s.Store) }

// Stalled returns what the underlying store returns.
func (s *Measured) Stalled() error { return store.Stalled(s.Store) }

// Now returns the time of the underlying store.
func (s *Measured) Now() time.Time { return store.Now(s.Store) }

// Acquire implements store.Store.
func (s *Measured) Acquire(ctx context.Context, r store.Run, hostID, bootEpoch string, ttl time.Duration,
	with ...store.Write) (store.Lease, error) {
	l, err := s.Store.Acquire(ctx, r, hostID, bootEpoch, ttl, with...)
	if err == nil {
		s.m.RunStarted(r.TriggerKind)
	}
	return l, err
}

// Submit implements store.Store. The commit then belongs to the underlying store, so its counts are
// taken before.
func (s *Measured) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	n, begun := note(c), time.Now()
	receipt, err := s.Store.Submit(ctx, c)
	if err != nil {
		return nil, err
	}
	s.wg.Go(func() {
		ack, err := receipt.Result()
		s.m.committed(n, ack, err, time.Since(begun))
	})
	return receipt, nil
}

// Close closes the underlying store and returns once all commits are counted.
func (s *Measured) Close() error {
	err := s.Store.Close()
	s.wg.Wait()
	return err
}

// A noted commit holds the counts of a commit.
type noted struct {
	batches         []int // records of each
	bytes           int
	asked           []string // kinds
	closed          []string // statuses
	ended           bool
	outcome, reason string
	took            time.Duration // of the run
}

func note(c *store.Commit) noted {
	n := noted{}
	for _, b := range c.Batches {
		n.batches = append(n.batches, b.Len())
		n.bytes += b.Size()
	}
	if c.Ask != nil {
		n.asked = append(n.asked, c.Ask.Kind)
	}
	for _, e := range c.Events {
		if e.Type == "run.interaction_completed" {
			n.closed = append(n.closed, member(e.Data, "status"))
		}
	}
	if c.End && c.Run != nil && len(c.Events) > 0 {
		last := c.Events[len(c.Events)-1].Data
		n.ended, n.outcome, n.reason = true, c.Run.Status, member(last, "reason")
		if member(last, "outcome") == "partial" {
			n.outcome = "partial"
		}
		if c.Run.FinishedAt != nil {
			n.took = c.Run.FinishedAt.Sub(c.Run.StartedAt)
		}
	}
	return n
}

// member returns a string member of an event's data, or "" if there is none.
func member(data json.RawMessage, name string) string {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(data, &members) != nil || json.Unmarshal(members[name], &value) != nil {
		return ""
	}
	return value
}

func (m *Metrics) committed(n noted, ack store.Ack, err error, took time.Duration) {
	m.commits.WithLabelValues(result(err)).Inc()
	if err != nil {
		return
	}
	m.commitSeconds.Observe(took.Seconds())
	for _, records := range n.batches {
		m.batchRecords.Observe(float64(records))
		m.batchSeconds.Observe(took.Seconds())
	}
	m.records.WithLabelValues("changed").Add(float64(ack.Changed))
	m.records.WithLabelValues("unchanged").Add(float64(ack.Unchanged))
	m.recordBytes.Add(float64(n.bytes))
	for _, kind := range n.asked {
		m.InteractionOpened(kind)
	}
	for _, status := range n.closed {
		m.InteractionClosed(status)
	}
	if n.ended {
		m.RunEnded(n.outcome, n.reason, n.took)
	}
}

func result(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrRunTerminal):
		return "fenced"
	case errors.Is(err, store.ErrNoSpace):
		return "full"
	}
	return "failed"
}
