package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A correlation is the document of a scope id: the runs with it that were active when it was written. Every start with
// the scope id changes it, in the commit that starts the run, so that of starts at the same moment, at any host, each
// sees those before it.
type correlation struct {
	id       string // of the document
	revision uint64
	runs     []store.RunID
}

// correlationKept is how long a document outlives the last start of its scope id, if the host that performs the run
// does not see its end.
const correlationKept = 30 * 24 * time.Hour

// correlate reads which runs of a scope id are active. If only is true, it refuses a start beside them. It returns nil
// for no scope id.
func (d *directory) correlate(ctx context.Context, scopeID string, only bool) (*correlation, error) {
	if scopeID == "" {
		return nil, nil
	}
	c, err := d.correlation(ctx, scopeID)
	if err != nil {
		return nil, err
	}
	known := c.runs
	c.runs = nil
	for _, id := range known {
		rec, err := d.Store.Run(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && rec.Status != "active":
			continue // a caller that saw its end may start the next one
		case err != nil:
			return nil, err
		case only:
			return nil, host.Refuse("run_already_active", "a run with this scopeId is active").With("activeRunId", string(id))
		}
		c.runs = append(c.runs, id)
	}
	return c, nil
}

// correlation reads the document of a scope id, which may be absent.
func (d *directory) correlation(ctx context.Context, scopeID string) (*correlation, error) {
	sum := sha256.Sum256([]byte(scopeID))
	c := &correlation{id: hex.EncodeToString(sum[:])}
	doc, err := d.Store.Document(ctx, store.Correlations, c.id)
	if errors.Is(err, store.ErrNotFound) {
		return c, nil
	}
	if err == nil {
		c.revision, err = doc.Revision, json.Unmarshal(doc.Data, &c.runs)
	}
	if err != nil {
		return nil, fmt.Errorf("read the runs of a scope id: %w", err)
	}
	return c, nil
}

// with returns what the commit that starts a run writes: more, and the document of its scope id.
func (c *correlation) with(more func(store.Run) []store.Write, now time.Time) func(store.Run) []store.Write {
	if c == nil {
		return more
	}
	return func(r store.Run) (writes []store.Write) {
		if more != nil {
			writes = more(r)
		}
		return append(writes, c.write(append(c.runs, r.ID), now))
	}
}

// write returns the write of the document with other runs, under the revision that was read.
func (c *correlation) write(runs []store.RunID, now time.Time) store.Write {
	w := store.Write{Kind: store.Correlations, ID: c.id, If: &c.revision}
	if len(runs) > 0 {
		w.Data, _ = json.Marshal(runs) // strings
		w.ExpiresAt = now.Add(correlationKept)
	}
	return w
}

// overtaken reports whether a start failed because another start with its scope id was first.
func overtaken(err error) bool {
	var conflict *store.ConflictError
	return errors.As(err, &conflict) && conflict.Kind == store.Correlations
}

// uncorrelate takes a run that is over out of the document of its scope id. A start that comes first does so as well.
func (d *directory) uncorrelate(ctx context.Context, scopeID string) error {
	for {
		c, err := d.correlate(ctx, scopeID, false)
		if err == nil && c != nil && c.revision > 0 {
			err = d.Store.Write(ctx, c.write(c.runs, store.Now(d.Store)))
		}
		if !overtaken(err) {
			return err
		}
	}
}
