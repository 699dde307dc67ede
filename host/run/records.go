package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// records holds the admitted records that are not flushed yet, in one buffer per stream, and the counts of the
// run.
type records struct {
	*parts
	buffers  []buffer
	order    []int // streams with a buffer, by first buffered record
	buffered int   // bytes in all buffers
	perRun   recordCounts
	// submitted is the value of accepted once all pending flushes are durable.
	submitted int64
	free      []*store.Batch
	freeBytes int // capacity of the batches in free
}

// recordCounts are the counts of the whole run.
type recordCounts struct{ attempted, accepted, rejected, dropped int64 }

func (rs *records) counts() recordCounts { return rs.perRun }

// stored sets the counts to those of the timeline.
func (rs *records) stored(seen rebuilt) {
	rs.perRun = recordCounts{attempted: seen.attempted, accepted: seen.accepted, rejected: seen.rejected}
}

// streams returns the state of each stream, in the order of the scope.
func (rs *records) streams() []buffer { return rs.buffers }

type buffer struct {
	stream      string
	spec        abi.StreamSpec
	batch       *store.Batch
	pendingGaps []*store.DetailGap // pending gaps whose records are in batch
	rejected    rejections         // records rejected alone since the last flush
	refused     rejections         // rejected records of all flushes
	emitted     int64
	flushed     int64
	files       map[string]bool // fields that hold files; nil for none
	fileCount   int             // files of the records in batch
	staged      []*attached     // contents of these files that no commit has
	stagedBytes int             // their bytes in memory
}

func newRecords(all *parts) *records {
	rs := &records{parts: all}
	for _, s := range all.plan.scope.Streams {
		spec := all.plan.manifest.Stream(s.Name)
		rs.buffers = append(rs.buffers, buffer{stream: s.Name, spec: spec, files: spec.FileFields()})
	}
	return rs
}

func (b *buffer) len() int {
	if b.batch == nil {
		return b.rejected.count
	}
	return b.batch.Len() + b.rejected.count
}

func (b *buffer) size() int {
	if b.batch == nil {
		return 0
	}
	return b.batch.Size()
}

// admit checks and buffers a record that passed the checks of the protocol, and flushes full buffers.
func (rs *records) admit(m *abi.RecordMessage) {
	b := &rs.buffers[m.Stream]
	if b.len() == 0 {
		rs.order = append(rs.order, m.Stream)
	}
	b.emitted++
	bad, held := b.reject(m), heldFiles{}
	if bad == nil && b.files != nil && !m.Delete {
		held, bad = rs.files.resolve(b.files, m)
	}
	if bad != nil {
		if len(b.rejected.first) < maxRejections {
			bad.Key = redact.Gap(rs.canary.Text(string(m.Key)), maxGapText)
		}
		b.rejected.add(*bad)
	} else {
		b.pendingGaps = append(b.pendingGaps, rs.gaps.takePending(b.stream, m.Key)...)
		rs.buffer(b, m)
		b.hold(held)
	}
	switch {
	case b.len() >= rs.plan.Limits.FlushRecords || b.size()+b.stagedBytes >= rs.plan.Limits.FlushBytes ||
		b.fileCount >= maxHeldPerFlush:
		rs.flush(m.Stream)
	case rs.buffered >= 2*rs.plan.Limits.FlushBytes: // many streams together
		rs.flush(rs.fullest())
	}
}

// fullest returns the stream with the largest buffer.
func (rs *records) fullest() int {
	return slices.MaxFunc(rs.order, func(a, b int) int { return cmp.Compare(rs.buffers[a].size(), rs.buffers[b].size()) })
}

func (rs *records) buffer(b *buffer, m *abi.RecordMessage) {
	if b.batch == nil {
		b.batch = rs.newBatch(b.stream)
	}
	c := store.Change{Compound: m.Compound, Key: m.Key, Data: m.Data, EmittedAt: m.EmittedAt}
	if m.Delete {
		c.Op, c.Data = store.Delete, nil
	}
	if c.EmittedAt == 0 {
		c.EmittedAt = time.Now().UnixMicro()
	}
	rs.buffered -= b.batch.Size()
	b.batch.Append(c)
	rs.buffered += b.batch.Size()
}

// hold adds the files of the record that was buffered last.
func (b *buffer) hold(h heldFiles) {
	if b.files == nil {
		return
	}
	b.batch.Hold(h.held)
	b.fileCount += len(h.held)
	b.staged = append(b.staged, h.staged...)
	for _, x := range h.staged {
		b.stagedBytes += x.memory
	}
}

func (rs *records) newBatch(stream string) *store.Batch {
	if n := len(rs.free); n > 0 {
		b := rs.free[n-1]
		rs.free = rs.free[:n-1]
		rs.freeBytes -= cap(b.Packed())
		b.Reset(store.Stream(stream))
		return b
	}
	return &store.Batch{Stream: store.Stream(stream)}
}

// recycle keeps the memory of a batch for reuse, up to windowBytes.
func (rs *records) recycle(b *store.Batch) {
	if n := cap(b.Packed()); rs.freeBytes+n <= windowBytes {
		rs.free, rs.freeBytes = append(rs.free, b), rs.freeBytes+n
	}
}

// protected makes check 10 of RECORD, before the record is counted.
func (rs *records) protected(m *abi.RecordMessage) *abi.Violation {
	if !rs.canary.Armed() {
		return nil
	}
	if rs.canary.LeaksText(m.Key) {
		return rs.outcome.leaked("RECORD", "", "/key", nil)
	}
	if rs.canary.Leaks(m.Data) {
		return rs.outcome.leaked("RECORD", "", "/data", m.Data)
	}
	return nil
}

// refusedAll reports whether the run received records for a stream that p governs, but could store none of them.
// A cursor after them would lose them for good.
func (rs *records) refusedAll(p string) bool {
	return slices.ContainsFunc(rs.buffers, func(b buffer) bool {
		parents := rs.plan.manifest.Parents(b.stream)
		governed := slices.Contains(parents, p) || len(parents) == 0 && b.stream == p
		return governed && b.refused.count > 0 && b.flushed == 0
	})
}

// refusedRecords adds a known gap for every stream with rejected records, and returns an event for each stream
// of which no record could be stored.
func (rs *records) refusedRecords() (events []store.Event) {
	for i := range rs.buffers {
		b := &rs.buffers[i]
		if b.refused.count == 0 {
			continue
		}
		n := int64(b.refused.count)
		all := n + b.flushed
		message := fmt.Sprintf("%s of %s of %s could not be stored, for example %s.", strconv.FormatInt(n, 10),
			countOf(all, "record"), b.stream, b.refused.first[0])
		if b.flushed == 0 {
			message += " The cursor stays where it was."
		}
		raw, _ := redact.Marshal(map[string]any{"rejected": n, "rejection_codes": b.refused.codes,
			"records": b.refused.first})
		g := KnownGap{Kind: gapRejected, Reason: b.refused.most(), Severity: "actionable", Stream: &b.stream,
			Message: message, Count: n,
			RecoveryHint: Hint{abi.RetryOnConnectorUpgrade, false}, Diagnostics: raw}
		rs.gaps.add(g)
		if b.flushed > 0 {
			continue // run.batch_ingested reports it
		}
		events = append(events, rs.journal.streamEvent("run.stream_skipped", "skipped", b.stream, data{
			"stream": b.stream, "reason": g.Reason, "message": message, "known_gap": g, "diagnostics": g.Diagnostics,
		}))
	}
	return events
}

// An ingestFailure describes a failed flush in the terminal event.
type ingestFailure struct {
	Stream    string `json:"stream"`
	BatchSize int    `json:"batch_size"`
	Phase     string `json:"phase"`
}

// flush submits the buffer of a stream, with the event that announces it, as one commit. It does not wait.
func (rs *records) flush(stream int) {
	n := rs.buffers[stream].len()
	if n == 0 || !rs.outcome.ready() {
		return
	}
	if c := rs.plan.grantFault(store.Now(rs.deps.Store)); c != nil {
		c.ingest = &ingestFailure{rs.buffers[stream].stream, n, rs.loop.phase()}
		rs.outcome.latch(c)
		return
	}
	rs.commits.submit(rs.takeBatch(stream))
}

// takeBatch empties the buffer of a stream into a commit. done updates the counts once its outcome is known.
func (rs *records) takeBatch(stream int) (c *store.Commit, done func(store.Ack, error)) {
	b := &rs.buffers[stream]
	n := b.len()
	batch, met, refused := b.batch, b.pendingGaps, b.rejected
	rejected := refused.count
	accepted := n - rejected
	rs.buffered -= b.size()
	b.batch, b.pendingGaps, b.rejected = nil, nil, rejections{}
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
	held := b.staged
	c.Files = rs.files.takeStaged(held)
	b.staged, b.fileCount, b.stagedBytes = nil, 0, 0
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
		rs.files.forgetDurable(held)
		rs.gaps.markStored(met)
		p.accepted += int64(accepted)
		p.rejected += int64(rejected)
		b.refused.join(refused)
		b.flushed += int64(accepted)
	}
}

// How long the end of a run, or of a cancelled run, waits for the store to accept the last records.
const (
	keepTimeout          = 10 * time.Second
	keepTimeoutCancelled = time.Second
)

// keepEmitted stores what the guest had sent before the run ended, however it ended, since only cursors depend
// on how a run ends. If the store refuses the records or the grant is not usable, they are dropped, which does
// not change the status of the run. After a leak of a protected value nothing more is stored.
func (rs *records) keepEmitted() {
	if len(rs.order) == 0 || rs.outcome.mustDropRecords() || rs.plan.grantFault(store.Now(rs.deps.Store)) != nil {
		return
	}
	within := keepTimeout
	if rs.outcome.cancelled() || rs.commits.stalled() {
		within = keepTimeoutCancelled
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(rs.ctx), within)
	defer stop()
	rs.output.flushProgress(time.Now(), true)
	rs.history.makeNotResumable() // its journal lacks what follows
	rs.loop.settled()
	defer rs.outcome.saveCause()()
	for _, stream := range slices.Clone(rs.order) {
		c, done := rs.takeBatch(stream)
		p := rs.commits.newPending(c, done)
		rs.lease.sign(c)
		rs.journal.inOrder(c.Events)
		p.span = rs.journal.commitSpan(c.Events)
		if p.receipt, p.refused = rs.deps.Store.Submit(ctx, c); p.refused != nil {
			rs.commits.fail(p, p.refused)
			continue
		}
		rs.commits.addPending(p)
	}
	rs.loop.settled()
}

// ingestCause returns the cause of an end for an error of a flush.
func ingestCause(err error, f *ingestFailure) *cause {
	c := storeCause(err)
	c.ingest = f
	var sink *store.SinkError
	if !errors.As(err, &sink) && !errors.Is(err, store.ErrFenced) {
		c.reason = "ingest_storage_error"
	}
	return c
}

// flushAll flushes every buffer, in the order of their first records.
func (rs *records) flushAll() {
	for _, stream := range slices.Clone(rs.order) {
		rs.flush(stream)
	}
}

// flushFor flushes what a cursor of stream covers: its own buffer, and those of the streams that declare it as a
// parent.
func (rs *records) flushFor(stream string) {
	children := rs.plan.manifest.Children(stream)
	for _, i := range slices.Clone(rs.order) {
		if name := rs.buffers[i].stream; name == stream || slices.Contains(children, name) {
			rs.flush(i)
		}
	}
}

// dropBuffers drops all buffered records and counts them.
func (rs *records) dropBuffers() (dropped map[string]bool) {
	dropped = map[string]bool{}
	for i := range rs.buffers {
		b := &rs.buffers[i]
		if n := b.len(); n > 0 {
			rs.perRun.dropped += int64(n)
			dropped[b.stream] = true
			b.batch, b.rejected, b.staged, b.fileCount, b.stagedBytes = nil, rejections{}, nil, 0, 0
		}
	}
	rs.order, rs.buffered = nil, 0
	return dropped
}
