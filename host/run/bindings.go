package run

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
)

// bindings are the bindings that the run was lent, and the queue of what they report. Only the loop accesses
// fields that are not marked as guarded.
type bindings struct {
	*parts
	all            []binding.Binding
	speakersClosed bool // the speakers are closed
	inCall         bool // a call of a speaker is being handled
	surfaceGone    bool // the surface was lost
	noRetry        bool // the run must not be retried
	wake           chan struct{}
	done           chan struct{}   // closed with the speakers
	counts         map[string]int  // events so far, by type
	used           map[string]bool // where sealed values were typed
	surfaces       map[string]abi.Attachment

	mu            sync.Mutex // guards what follows
	reports       []func()   // in order; nil after end
	reportsClosed bool
}

func newBindings(all *parts) *bindings {
	bs := &bindings{
		parts: all, wake: make(chan struct{}, 1), done: make(chan struct{}),
		counts: map[string]int{}, used: map[string]bool{}, surfaces: map[string]abi.Attachment{},
	}
	bs.add(all.deps.Bindings...)
	each(bs, func(s binding.Reporter) { s.Begin(string(bs.id), backchannel{bs}) })
	return bs
}

// add adds bindings, which are closed with the run.
func (bs *bindings) add(more ...binding.Binding) {
	for _, b := range more {
		if b != nil {
			bs.all = append(bs.all, b)
		}
	}
}

// open returns the bindings that may be called.
func (bs *bindings) open() []binding.Binding {
	if !bs.speakersClosed {
		return bs.all
	}
	return slices.DeleteFunc(slices.Clone(bs.all), isSpeaker)
}

func isSpeaker(b binding.Binding) bool {
	_, ok := b.(binding.Reporter)
	return ok
}

// each calls f for every open binding with a role, and reports whether there is one.
func each[Role any](bs *bindings, f func(Role)) (found bool) {
	for _, b := range bs.open() {
		if r, ok := b.(Role); ok {
			f(r)
			found = true
		}
	}
	return found
}

// has reports whether an open binding has a role.
func has[Role any](bs *bindings) bool { return each(bs, func(Role) {}) }

// bindingFor returns the binding that handles a call, nil for none.
func (bs *bindings) bindingFor(call abi.Call, payload []byte) binding.Binding {
	for _, b := range bs.open() {
		if b.Takes(call, payload) {
			return b
		}
	}
	return nil
}

// takeBody takes over the content of a stream handle from the binding that owns it.
func takeBody(ctx context.Context, lent []binding.Binding, handle uint32) (io.ReadCloser, error) {
	read := abi.AppendRead(nil, handle, 1)
	for _, b := range lent {
		if !b.Takes(abi.CallRead, read) {
			continue
		}
		if g, ok := b.(binding.StreamTaker); ok {
			return g.TakeStream(ctx, handle)
		}
		break
	}
	return nil, refuseFile(abi.ENOENT, "unknown_handle", "there is no such handle")
}

// screen returns the binding whose screen the owner can look at, nil for none.
func (bs *bindings) screen() (s binding.Screen) {
	each(bs, func(b binding.Screen) { s = b })
	return s
}

// abort cancels requests in progress.
func (bs *bindings) abort() { each(bs, binding.Requester.Abort) }

// fault returns why the run cannot continue because of a binding, "" if it can.
func (bs *bindings) fault(gone bool) (code, message string) {
	each(bs, func(b binding.Requester) {
		if code == "" {
			code, message = b.Fault(gone)
		}
	})
	return code, message
}

// reportSignal is signalled when a binding reported something.
func (bs *bindings) reportSignal() <-chan struct{} { return bs.wake }

// serve returns the handler of a binding's call. The caller calls callDone when the call has ended.
func (bs *bindings) serve(b binding.Binding) handler {
	bs.inCall = isSpeaker(b)
	return b.Handle
}

func (bs *bindings) callDone() { bs.inCall = false }

// secretMayBeSpent reports whether a stored secret may have been sent without a session being established.
func (bs *bindings) secretMayBeSpent() bool { return bs.noRetry }

// post queues a report of a binding for the loop. It reports false if the loop does not listen any more. It may
// be called from any goroutine.
func (bs *bindings) post(f func()) bool {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.reportsClosed {
		return false
	}
	bs.reports = append(bs.reports, f)
	select {
	case bs.wake <- struct{}{}:
	default:
	}
	return true
}

// takeReports returns the queued reports.
func (bs *bindings) takeReports() []func() {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	reports := bs.reports
	bs.reports = nil
	return reports
}

// stopReports stops accepting reports.
func (bs *bindings) stopReports() {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.reportsClosed, bs.reports = true, nil
	close(bs.done)
}

// handleReports handles the queued reports in order.
func (bs *bindings) handleReports() {
	for _, f := range bs.takeReports() {
		f()
	}
}

// A backchannel implements binding.Run. Its methods only queue reports for the loop.
type backchannel struct{ bs *bindings }

var _ binding.Run = backchannel{}

func (c backchannel) Event(typ, status string, d map[string]any) {
	c.bs.post(func() { c.bs.browserEvent(typ, status, d) })
}

func (c backchannel) SealedUsed(field, origin, placement string) {
	c.bs.post(func() { c.bs.recordSealedUse(field, origin, placement) })
}

func (c backchannel) Progress(message string) {
	c.bs.post(func() { c.bs.hostProgress(message) })
}

func (c backchannel) Lost(surfaceID string, p binding.Probe) {
	c.bs.post(func() { c.bs.surfaceLost(surfaceID, p) })
}

func (c backchannel) Attachment(a abi.Attachment) {
	c.bs.post(func() { c.bs.surfaceChanged(a) })
}

func (c backchannel) End(f binding.Failure) {
	c.bs.post(func() { c.bs.endedByBinding(f) })
}

func (c backchannel) Artifact(a binding.Artifact) {
	c.bs.post(func() { c.bs.recordArtifact(a) })
}

func (c backchannel) Ask(ctx context.Context, message string, timeout time.Duration) (id, status string, err error) {
	q := &hostQuestion{message: message, timeout: timeout, reply: make(chan hostAnswer, 1)}
	if !c.bs.post(func() { c.bs.questions.askForHost(q) }) {
		return "", "", binding.ErrEnding
	}
	select {
	case a := <-q.reply:
		return a.id, a.status, a.err
	case <-c.bs.done:
		return "", "", binding.ErrEnding
	case <-ctx.Done():
		c.bs.post(func() { c.bs.questions.withdraw(q) })
		return "", "", ctx.Err()
	}
}

// How long a speaker may take to close, in which a browser writes its trace and ends gracefully, and how much
// later it is left behind.
const (
	speakerClose = 20 * time.Second
	speakerLeft  = 2 * time.Second
)

// closeSpeakers closes the speakers, on every path before the terminal event. What they report meanwhile is
// recorded, and the lease is renewed.
func (bs *bindings) closeSpeakers() {
	if !has[binding.Reporter](bs) {
		return
	}
	bs.abortCall()
	each(bs, func(b binding.Spender) { bs.noRetry = bs.noRetry || b.Spent() })
	ctx, cancel := context.WithTimeout(bs.ctx, speakerClose)
	defer cancel()
	open, done := 0, make(chan error, len(bs.all))
	for _, b := range bs.all {
		if isSpeaker(b) {
			open++
			go func() { done <- b.Close(ctx) }()
		}
	}
	bs.speakersClosed = true
	late := time.NewTimer(speakerClose + speakerLeft)
	defer late.Stop()
	for open > 0 {
		var err error
		select {
		case err = <-done:
			open--
		case <-late.C:
			err, open = context.DeadlineExceeded, 0
		case <-bs.wake:
			bs.handleReports()
		case now := <-bs.loop.ticking():
			if !bs.outcome.over() {
				bs.lease.renew(now)
			}
		}
		if err != nil {
			slog.Error("close binding", "run", bs.id, "error", err)
		}
	}
	bs.handleReports()
	bs.stopReports()
	bs.loop.settled()
}

// close closes the other bindings after the terminal event.
func (bs *bindings) close() {
	for _, b := range bs.all {
		if isSpeaker(b) {
			continue
		}
		if err := b.Close(context.WithoutCancel(bs.ctx)); err != nil {
			slog.Error("close binding", "run", bs.id, "error", err)
		}
	}
}

// withoutRetry returns the recovery hint of a failure. If a stored secret may be spent, the run is not retried until
// its owner has acted, whatever the connector says.
func (bs *bindings) withoutRetry(h Hint) Hint {
	switch {
	case !bs.noRetry:
		return h
	case h.Action == abi.RefreshCredentials:
		return Hint{h.Action, false}
	}
	return Hint{abi.ManualActionRequired, false}
}

// abortCall ends the call of a speaker, so that the binding is not closed during it. A call that ignores its
// context is left alone.
func (bs *bindings) abortCall() {
	if !bs.inCall {
		return
	}
	bs.calls.abortCall()
	late := time.NewTimer(speakerLeft)
	defer late.Stop()
	select {
	case f := <-bs.calls.finishedCalls():
		f.in.Release()
		bs.inCall = false
	case <-late.C:
	}
}

// endedByBinding ends collection as failed, like a DONE of the guest with that error, unless the guest sent a
// DONE before.
func (bs *bindings) endedByBinding(f binding.Failure) {
	if !bs.outcome.ready() || bs.outcome.proposal() != nil || bs.outcome.workerExit() != nil {
		return
	}
	failure := &abi.DoneError{Message: redact.Gap(bs.canary.Text(f.Message), 500), Code: f.Code, Retryable: &f.Retryable}
	if f.Hint != "" {
		failure.RecoveryHint = &abi.RecoveryHint{Action: f.Hint, Retryable: &f.Retryable}
	}
	bs.outcome.propose(&abi.DoneMessage{Status: abi.Failed, RecordsEmitted: new(bs.proto.Records()), Error: failure})
	bs.outcome.latch(&cause{reason: "connector_reported_failed", origin: "runtime", message: failure.Message})
}

// Limits of the events that a browser adds to a timeline: allActions events of each type; beyond that only
// failed actions and a count every actionCount actions; at most maxDenials refused requests.
const (
	allActions  = 1000
	actionCount = 100
	maxDenials  = 200
)

const (
	eventAction = "run.browser_action"
	eventDenied = "run.browser_egress_denied"
)

// browserEvent records an event of the browser. A page may influence hosts and roles, so all of it is redacted.
func (bs *bindings) browserEvent(typ, status string, d data) {
	if !strings.HasPrefix(typ, "run.browser_") && !strings.HasPrefix(typ, "run.stream_") {
		slog.Error("the browser recorded an event of another kind", "run", bs.id, "type", typ)
		return
	}
	bs.counts[typ]++
	n := bs.counts[typ]
	switch {
	case typ == eventDenied && n > maxDenials:
		return
	case typ == eventAction && n > allActions:
		if n%actionCount == 0 {
			bs.recordBrowser(typ, abi.Succeeded, data{"actions": n})
		}
		if status != abi.Failed {
			return
		}
	case n > allActions:
		return
	}
	bs.recordBrowser(typ, status, d)
}

func (bs *bindings) recordBrowser(typ, status string, d data) {
	e := bs.journal.event(typ, status, cloneData(d))
	e.Data = bs.canary.JSON(e.Data)
	bs.commits.record(e)
}

// cloneData copies a payload that another package made.
func cloneData(d data) data {
	out := make(data, len(d)+1)
	maps.Copy(out, d)
	return out
}

// recordSealedUse records where sealed values were typed into a page, each place once.
func (bs *bindings) recordSealedUse(field, origin, placement string) {
	key := field + "\x00" + origin + "\x00" + placement
	if bs.used[key] {
		return
	}
	bs.used[key] = true
	e := bs.journal.event("run.sealed_value_used", "succeeded",
		data{"field": field, "origin": origin, "placement": placement})
	bs.commits.record(e)
}

// recordArtifact records a file that the run leaves to its owner. The event has what identifies it; the file is
// stored with others of its type.
func (bs *bindings) recordArtifact(a binding.Artifact) {
	bs.commits.record(bs.journal.event("artifact.created", "succeeded", data{
		"artifactId": newULID("art_", time.Now()), "artifactType": a.Type, "nodeId": bs.plan.manifest.Node(), "version": 1,
		"summary": a.Summary, "mediaType": a.MediaType, "size": a.Size, "digest": a.Digest,
	}))
}

// hostProgress records progress that the host reports.
func (bs *bindings) hostProgress(message string) {
	e := bs.journal.event("run.progress_reported", "in_progress",
		data{"message": redact.Progress(bs.canary.Text(message)), "origin": "host"})
	bs.commits.record(e)
}
