package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// ingestFailure is what the terminal event says of a flush that failed.
type ingestFailure struct {
	Stream    string `json:"stream"`
	BatchSize int    `json:"batch_size"`
	Phase     string `json:"phase"`
}

// flush hands one stream's buffer to the store: its records and the event that
// announces them, in one commit. It does not wait.
func (r *run) flush(stream int) {
	n := r.records.buffers[stream].len()
	if n == 0 || !r.ready() {
		return
	}
	if c := r.grantFault(); c != nil {
		c.ingest = &ingestFailure{r.records.buffers[stream].stream, n, r.phase()}
		r.latch(c)
		return
	}
	r.submit(r.taken(stream))
}

// taken empties one stream's buffer into a commit. done counts what became of it.
func (r *run) taken(stream int) (c *store.Commit, done func(store.Ack, error)) {
	b := &r.records.buffers[stream]
	n := b.len()
	batch, met, refused := b.batch, b.met, b.rejected
	rejected := refused.count
	accepted := n - rejected
	r.records.buffered -= b.size()
	b.batch, b.met, b.rejected = nil, nil, rejections{}
	r.records.order = slices.DeleteFunc(r.records.order, func(i int) bool { return i == stream })
	r.records.submitted += int64(accepted)
	d := data{
		"batch_size": n, "records_attempted": n, "records_accepted": accepted, "records_flushed": accepted,
		"records_rejected": rejected, "records_permanently_rejected": rejected,
		"total_records_flushed": r.records.submitted, "grant_id": nullable(string(r.plan.grant)),
	}
	if rejected > 0 {
		d["rejection_codes"], d["rejections"] = refused.codes, refused.first
	}
	c = &store.Commit{Events: []store.Event{r.streamEvent("run.batch_ingested", abi.Succeeded, b.stream, d)}}
	if batch != nil {
		c.Batches = []*store.Batch{batch}
	}
	phase := r.phase()
	return c, func(_ store.Ack, err error) {
		if batch != nil {
			r.records.recycle(batch)
		}
		p := &r.records.perRun
		p.attempted += int64(n)
		if err != nil {
			p.dropped += int64(n)
			r.latchStore(ingestCause(err, &ingestFailure{b.stream, n, phase}))
			return
		}
		r.details.met = append(r.details.met, met...)
		p.accepted += int64(accepted)
		p.rejected += int64(rejected)
		b.refused.join(refused)
		b.flushed += int64(accepted)
	}
}

// How long the last records of a run may wait for a place on the disk: it is full,
// or very slow. Whoever cancels waits with them.
const (
	keepWithin          = 10 * time.Second
	keepWithinCancelled = time.Second
)

// keepEmitted stores what the guest had sent before the run ended, however it
// ended: records are facts, and only a cursor is a promise. A store that refuses
// them, or a grant that is over, leaves them dropped, and changes nothing about
// how the run ends. Beside a protected value nothing is kept that is not yet.
func (r *run) keepEmitted() {
	c := r.latched
	if len(r.records.order) == 0 || c != nil && (c.origin == "storage" || c.fenced || c.leaked()) || r.grantFault() != nil {
		return
	}
	within := keepWithin
	if r.cancel != nil || r.stall != nil {
		within = keepWithinCancelled
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.ctx), within)
	defer stop()
	r.flushProgress(time.Now(), true)
	r.settled()
	latched := r.latched
	for _, stream := range slices.Clone(r.records.order) {
		c, done := r.taken(stream)
		p := r.pend(c, done)
		c.Lease, c.Grant = r.lease, r.plan.grant
		r.inOrder(c.Events)
		p.span = r.appended(c.Events)
		if p.receipt, p.refused = r.deps.Store.Submit(ctx, c); p.refused != nil {
			r.fail(p, p.refused)
			continue
		}
		r.pending = append(r.pending, p)
	}
	r.settled()
	r.latched = latched
}

// ingestCause maps what the sink said of a flush.
func ingestCause(err error, f *ingestFailure) *cause {
	c := storeCause(err)
	c.ingest = f
	var sink *store.SinkError
	if !errors.As(err, &sink) && !errors.Is(err, store.ErrFenced) {
		c.reason = "ingest_storage_error"
	}
	return c
}

// flushAll flushes every buffer, in the order of their first record.
func (r *run) flushAll() {
	for _, stream := range slices.Clone(r.records.order) {
		r.flush(stream)
	}
}

// flushFor flushes what a cursor of stream covers: its own buffer and those of
// the streams that declare it as a parent.
func (r *run) flushFor(stream string) {
	children := r.plan.manifest.Children(stream)
	for _, i := range slices.Clone(r.records.order) {
		if name := r.records.buffers[i].stream; name == stream || slices.Contains(children, name) {
			r.flush(i)
		}
	}
}

// dropBuffers counts what will never be flushed.
func (r *run) dropBuffers() (dropped map[string]bool) {
	dropped = map[string]bool{}
	for i := range r.records.buffers {
		b := &r.records.buffers[i]
		if n := b.len(); n > 0 {
			r.records.perRun.dropped += int64(n)
			dropped[b.stream] = true
			b.batch, b.rejected = nil, rejections{}
		}
	}
	r.records.order, r.records.buffered = nil, 0
	return dropped
}

// grantFault is the end of a run whose grant has run out, nil while it is
// usable. What changes it meanwhile the store knows.
func (r *run) grantFault() *cause {
	code := r.plan.Connection.Grant.Fault(time.Now())
	if code == "" {
		return nil
	}
	return &cause{reason: code, origin: "storage", message: "The grant of this connection is no longer usable."}
}

// phase names where the run is, for events and the run record.
func (r *run) phase() string {
	switch {
	case r.guest == nil:
		return "preparing"
	case r.asking != nil:
		return "waiting"
	case r.done != nil:
		return "finishing"
	}
	return "running"
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
