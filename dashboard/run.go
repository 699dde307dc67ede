package dashboard

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// maxReason bounds the reason that an owner gives for a cancel.
const maxReason = 200

// runBody is what the page of a run shows. Its parts are sent again when they change.
type runBody struct {
	ID         store.RunID
	Connection store.ConnectionID
	Snapshot   timeline.Snapshot
	Row        store.Run
	Live       *host.LiveRun
	Elsewhere  *host.Member // the host that has the run, if not this one; Live is nil if that host does not report
	Asks       []ask
	Streams    []streamRow
	Gaps       []gap
	Failed     string          // the author's failure code, or the host's
	Helps      timeline.Remedy // what to do after a failure
	Start      startFacts
	Used       []fact // of a finished run
	Budgets    []budget
	Browser    *browserCard // nil: the run has none
	Left       []left
	Stages     []stage
	Speed      *plot // records per second
	Memory     *plot // of the connector, over the same time
	Cut        bool  // the stages cover only the first events
	Events     []eventRow
	Newest     uint64 // sequence after the newest event shown
	More       bool   // there are older events
	Steps      []step // steps to a first run
}

// Over reports whether the run has ended.
func (b runBody) Over() bool { return b.Snapshot.Status.Terminal() }

// A streamRow is the progress of one stream.
type streamRow struct {
	Name       string
	Records    int64
	Checkpoint string
	Message    string
	Count      *int64
	Total      *int64
	Rate       string // records per second, while running
	Left       string // remaining time, if count and total are known
}

// A gap is data that a run knows it did not get, and what can be done.
type gap struct {
	Stream, Reason, Message string
	Count                   int64
	Helps                   timeline.Remedy
}

// startFacts are members of run.started.
type startFacts struct {
	Isolation struct {
		Level, Seccomp string
		Namespaces     []string
		Landlock       int
	}
	Mode    string   `json:"collection_mode"`
	Streams []string `json:"scope_streams"`
}

// runOf returns the run in the path.
func (u *runUI) runOf(c *fiber.Ctx) (store.Run, error) {
	id, err := web.ID(c, "runId")
	if err != nil {
		return store.Run{}, err
	}
	return u.rows.Run(web.Context(c), store.RunID(id))
}

func (u *runUI) lookRun(ctx context.Context, id store.RunID) (runBody, error) {
	s, err := u.streams.Snapshot(ctx, id)
	if err != nil {
		return runBody{}, err
	}
	b := runBody{ID: id, Snapshot: s, Connection: s.Sluice.ConnectionID}
	if b.Row, err = u.rows.Run(ctx, id); err != nil {
		return b, err
	}
	if !s.Status.Terminal() {
		b.Live, b.Elsewhere = u.runs.LiveRunAt(ctx, id)
	}
	var items []timeline.Item
	var files []timeline.Artifact
	if err := u.streams.Fold(ctx, id, func(_ store.Run, f *timeline.Fold) {
		items, files, b.Browser = f.Assistance(false), f.Artifacts(), cardOf(f.Browser())
	}); err != nil {
		return b, err
	}
	if b.Left, err = u.leftBy(ctx, id, files); err != nil {
		return b, err
	}
	for _, i := range items {
		if i.Status != timeline.ItemOpen && i.Status != timeline.ItemAbandoned {
			continue
		}
		a, err := u.asked(ctx, i, string(b.Connection))
		if err != nil {
			return b, err
		}
		b.Asks = append(b.Asks, a)
	}
	if first, err := u.rows.Events(ctx, id, 0, 1); err == nil && len(first) == 1 {
		_ = json.Unmarshal(first[0].Data, &b.Start) // a log without its start shows none
	}
	b.Streams = streamRows(s, u.now())
	b.explain()
	if b.Stages, b.Speed, b.Cut, err = u.stagesOf(ctx, b.Row); err != nil {
		return b, err
	}
	b.Memory = memoryOf(b.Row, b.Live, u.now())
	b.Used = usedOf(b.Row.Result)
	b.Budgets = budgets(u.system.Info(ctx).Limits, spent(b.Row, b.Live, u.now()))
	return b, nil
}

// streamRows returns the streams of a run by name, with rate and estimate.
func streamRows(s timeline.Snapshot, now time.Time) []streamRow {
	var rows []streamRow
	at := func(name string) *streamRow {
		for i := range rows {
			if rows[i].Name == name {
				return &rows[i]
			}
		}
		rows = append(rows, streamRow{Name: name})
		return &rows[len(rows)-1]
	}
	for _, n := range s.NodeStates {
		for name, x := range n.Streams {
			r := at(name)
			r.Records, r.Checkpoint = x.Records, x.Checkpoint
		}
		for name, p := range n.Progress {
			r := at(name)
			r.Message, r.Count, r.Total = p.Message, p.Count, p.Total
			r.estimate(moment(n.StartedAt), moment(p.At), s.Status)
		}
	}
	for i := range rows {
		rows[i].rate(moment(s.StartedAt), now, s.Status)
	}
	slices.SortFunc(rows, func(a, b streamRow) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

func (r *streamRow) rate(from, now time.Time, status timeline.Status) {
	if d := now.Sub(from); status == timeline.Running && r.Records > 0 && !from.IsZero() && d > time.Second {
		r.Rate = count(int64(float64(r.Records)/d.Seconds()+0.5)) + "/s"
	}
}

// estimate sets roughly how long the rest takes at the pace so far.
func (r *streamRow) estimate(from, at time.Time, status timeline.Status) {
	if status != timeline.Running || r.Count == nil || r.Total == nil || *r.Count <= 0 ||
		*r.Total <= *r.Count || !at.After(from) {
		return
	}
	left := time.Duration(float64(at.Sub(from)) / float64(*r.Count) * float64(*r.Total-*r.Count))
	if left > 0 && left < 1000*time.Hour {
		r.Left = "about " + roughly(left) + " left"
	}
}

// maxGaps bounds the gaps on a page.
const maxGaps = 100

// explain reads from a run's end what is missing, why it failed and what helps. A gap that only
// repeats the failure is left out.
func (b *runBody) explain() {
	about := timeline.Trouble{Connection: b.Connection, Connector: b.Snapshot.Sluice.ConnectorName, Run: b.ID}
	var list []struct {
		Kind, Stream, Reason, Message string
		Count                         int64
		Hint                          struct{ Action string } `json:"recovery_hint"`
	}
	_ = json.Unmarshal(b.Snapshot.Sluice.KnownGaps, &list) // an invalid list shows none
	for _, g := range list {
		t := about
		t.Kind, t.Reason, t.Action, t.Said = g.Kind, g.Reason, g.Hint.Action, g.Message != ""
		if g.Kind == "run_failed" {
			b.Helps = t.Remedy()
			continue
		}
		if len(b.Gaps) < maxGaps {
			b.Gaps = append(b.Gaps, gap{g.Stream, g.Reason, g.Message, g.Count, t.Remedy()})
		}
	}
	if b.Helps.Text == "" {
		about.Reason = b.Snapshot.Sluice.TerminalReason
		b.Helps = about.Remedy()
	}
	if e := b.Snapshot.Error; e != nil {
		b.Failed = e.Author()
	}
}

func (u *runUI) showRun(c *fiber.Ctx) error {
	r, err := u.runOf(c)
	if err != nil {
		return err
	}
	ctx := web.Context(c)
	b, err := u.lookRun(ctx, r.ID)
	if err != nil {
		return err
	}
	if b.Events, b.More, err = u.events(ctx, r.ID, 0); err != nil {
		return err
	}
	if len(b.Events) > 0 {
		b.Newest = b.Events[0].Sequence + 1
	}
	if b.Steps, err = u.firstRun(c, r); err != nil {
		return err
	}
	return u.show(c, "run", content{Title: "Run of " + string(r.ConnectionID), Nav: "runs",
		Live: "/ui/runs/" + string(r.ID) + "/live", Body: b})
}

// runLive streams a run's page. after is the first sequence that the page has not seen.
func (u *runUI) runLive(c *fiber.Ctx) error {
	r, err := u.runOf(c)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	next := uint64(q.Int("after", 0, 0, stream.MaxSequence))
	if err := q.Err(); err != nil {
		return err
	}
	// A browser that opens the stream again by itself asks for what it asked for at first.
	if last := stream.ParseLastEventID(c.Get("Last-Event-ID")); last != nil {
		next = max(next, *last+1)
	}
	f := &runFeed{drawing: drawing{u: u.frame, page: "run", sent: map[string][]byte{}}, ui: u, id: r.ID, next: next}
	return u.serve(c, r.ID, f.write)
}

// A runFeed is the stream of one run's page.
type runFeed struct {
	drawing
	ui   *runUI
	id   store.RunID
	next uint64
}

func (f *runFeed) write(ctx context.Context, out *stream.Out) (time.Duration, error) {
	if wait := f.early(out); wait > 0 {
		return wait, nil
	}
	if err := f.events(ctx, out); err != nil {
		return 0, err
	}
	b, err := f.ui.lookRun(ctx, f.id)
	if err != nil {
		return 0, err
	}
	if err := f.send(ctx, out, b, "head", "asks", "streams", "stages", "usage", "outcome"); err != nil {
		return 0, err
	}
	if (b.Live != nil || b.Elsewhere != nil) && !b.Over() {
		return 2 * time.Second, nil // resource usage has no events
	}
	return rest, nil
}

// events sends new events, or the newest page of them if there are more.
func (f *runFeed) events(ctx context.Context, out *stream.Out) error {
	list, more, err := f.ui.events(ctx, f.id, 0)
	if err != nil || len(list) == 0 {
		return err
	}
	fresh := slices.IndexFunc(list, func(e eventRow) bool { return e.Sequence < f.next })
	if fresh < 0 {
		fresh = len(list)
	}
	if fresh == 0 {
		return nil
	}
	missed := fresh == len(list) && more && f.next > 0 && list[len(list)-1].Sequence > f.next
	f.next = list[0].Sequence + 1
	name := "events"
	if missed { // the page starts over with the newest
		name = "allevents"
	}
	text, err := f.u.render("run", name, runBody{ID: f.id, Events: list[:fresh], More: more})
	if err != nil {
		return err
	}
	return out.Event(strconv.FormatUint(f.next-1, 10), name, text)
}

// olderEvents serves the page of events before a sequence.
func (u *runUI) olderEvents(c *fiber.Ctx) error {
	r, err := u.runOf(c)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	before := uint64(q.Int("before", 0, 0, stream.MaxSequence))
	if err := q.Err(); err != nil {
		return err
	}
	b := runBody{ID: r.ID}
	if b.Events, b.More, err = u.events(web.Context(c), r.ID, before); err != nil {
		return err
	}
	return u.write(c, "run", "older", b)
}

func (u *runUI) cancelRun(c *fiber.Ctx) error {
	r, f, err := u.runAndForm(c)
	if err != nil {
		return err
	}
	if _, err := u.runs.CancelRun(web.Context(c), r.ID, abi.Cut(abi.Clean(f.raw("reason")), maxReason)); err != nil {
		return err
	}
	return done(c, "The run is being cancelled.")
}

func (u *runUI) pauseRun(c *fiber.Ctx) error {
	r, _, err := u.runAndForm(c)
	if err != nil {
		return err
	}
	if _, err := u.runs.PauseRun(web.Context(c), r.ID, "drain-current-node", ""); err != nil {
		return err
	}
	return done(c, "The run pauses at the next good moment.")
}

func (u *runUI) resumeRun(c *fiber.Ctx) error {
	r, _, err := u.runAndForm(c)
	if err != nil {
		return err
	}
	if _, err := u.runs.ResumeRun(web.Context(c), r.ID, ""); err != nil {
		return err
	}
	return done(c, "The run goes on.")
}

func (u *runUI) runAndForm(c *fiber.Ctx) (store.Run, *form, error) {
	r, err := u.runOf(c)
	if err != nil {
		return r, nil, err
	}
	f, err := formOf(c)
	return r, f, err
}

// startRun starts a run of a connection and opens its page.
func (u *runUI) startRun(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	q := host.StartRun{WorkflowID: f.text("connection", 64), Mode: f.text("mode", 32)}
	if err := f.err(); err != nil {
		return err
	}
	r, err := u.runs.StartRun(web.Context(c), q)
	if err != nil {
		return err
	}
	return leave(c, "/ui/runs/"+string(r.ID))
}
