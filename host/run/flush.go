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
func (rs *records) flush(stream int) {
	n := rs.buffers[stream].len()
	if n == 0 || !rs.outcome.ready() {
		return
	}
	if c := rs.plan.grantFault(); c != nil {
		c.ingest = &ingestFailure{rs.buffers[stream].stream, n, rs.loop.phase()}
		rs.outcome.latch(c)
		return
	}
	rs.commits.submit(rs.taken(stream))
}

// taken empties one stream's buffer into a commit. done counts what became of it.
func (rs *records) taken(stream int) (c *store.Commit, done func(store.Ack, error)) {
	b := &rs.buffers[stream]
	n := b.len()
	batch, met, refused := b.batch, b.met, b.rejected
	rejected := refused.count
	accepted := n - rejected
	rs.buffered -= b.size()
	b.batch, b.met, b.rejected = nil, nil, rejections{}
	rs.order = slices.DeleteFunc(rs.order, func(i int) bool { return i == stream })
	rs.submitted += int64(accepted)
	d := data{
		"batch_size": n, "records_attempted": n, "records_accepted": accepted, "records_flushed": accepted,
		"records_rejected": rejected, "records_permanently_rejected": rejected,
		"total_records_flushed": rs.submitted, "grant_id": nullable(string(rs.plan.grant)),
	}
	if rejected > 0 {
		d["rejection_codes"], d["rejections"] = refused.codes, refused.first
	}
	c = &store.Commit{Events: []store.Event{rs.journal.streamEvent("run.batch_ingested", abi.Succeeded, b.stream, d)}}
	if batch != nil {
		c.Batches = []*store.Batch{batch}
	}
	phase := rs.loop.phase()
	return c, func(_ store.Ack, err error) {
		if batch != nil {
			rs.recycle(batch)
		}
		p := &rs.perRun
		p.attempted += int64(n)
		if err != nil {
			p.dropped += int64(n)
			rs.outcome.latchStore(ingestCause(err, &ingestFailure{b.stream, n, phase}))
			return
		}
		rs.gaps.stored(met)
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
func (rs *records) keepEmitted() {
	if len(rs.order) == 0 || rs.outcome.unkept() || rs.plan.grantFault() != nil {
		return
	}
	within := keepWithin
	if rs.outcome.cancelled() || rs.commits.stalled() {
		within = keepWithinCancelled
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(rs.ctx), within)
	defer stop()
	rs.output.flushProgress(time.Now(), true)
	rs.loop.settled()
	defer rs.outcome.unchanged()()
	for _, stream := range slices.Clone(rs.order) {
		c, done := rs.taken(stream)
		p := rs.commits.pend(c, done)
		rs.lease.sign(c)
		rs.journal.inOrder(c.Events)
		p.span = rs.journal.appended(c.Events)
		if p.receipt, p.refused = rs.deps.Store.Submit(ctx, c); p.refused != nil {
			rs.commits.fail(p, p.refused)
			continue
		}
		rs.commits.adopt(p)
	}
	rs.loop.settled()
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
func (rs *records) flushAll() {
	for _, stream := range slices.Clone(rs.order) {
		rs.flush(stream)
	}
}

// flushFor flushes what a cursor of stream covers: its own buffer and those of
// the streams that declare it as a parent.
func (rs *records) flushFor(stream string) {
	children := rs.plan.manifest.Children(stream)
	for _, i := range slices.Clone(rs.order) {
		if name := rs.buffers[i].stream; name == stream || slices.Contains(children, name) {
			rs.flush(i)
		}
	}
}

// dropBuffers counts what will never be flushed.
func (rs *records) dropBuffers() (dropped map[string]bool) {
	dropped = map[string]bool{}
	for i := range rs.buffers {
		b := &rs.buffers[i]
		if n := b.len(); n > 0 {
			rs.perRun.dropped += int64(n)
			dropped[b.stream] = true
			b.batch, b.rejected = nil, rejections{}
		}
	}
	rs.order, rs.buffered = nil, 0
	return dropped
}

// grantFault is the end of a run whose grant has run out, nil while it is
// usable. What changes it meanwhile the store knows.
func (p *Plan) grantFault() *cause {
	code := p.Connection.Grant.Fault(time.Now())
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
	case r.questions.open():
		return "waiting"
	case r.outcome.proposal() != nil:
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
