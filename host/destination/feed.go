package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Timing of a feed.
const (
	settle    = time.Second     // wait after a commit, for others that follow
	restTimes = 4               // a feed rests this many times as long as it worked
	longest   = time.Minute     // but not longer than this
	firstTry  = 2 * time.Second // wait after a failure, doubled with each further one
	lastTry   = 5 * time.Minute // maximum of that
)

// A feed brings what was collected into one destination. The goroutine that runs loop owns the fields above mu.
type feed struct {
	o      Options
	orphan bool // no host feeds it or is about to; the feed is only for display
	asked  chan request
	end    context.CancelFunc
	gone   chan struct{} // closed when loop has ended
	sink   Sink          // nil unless open; used by the pass in progress
	told   []Described   // current content of the sink's table of streams
	// blocked maps the streams whose tables could not be fed to the reason. They are tried again at retry, while the
	// others continue.
	blocked map[StreamID]error
	retry   time.Time

	mu     sync.Mutex // guards the fields below
	def    definition
	busy   bool
	next   time.Time // time of the next pass; zero for none
	status status
}

// A status is the stored state of a destination.
type status struct {
	Error    string                   `json:"error,omitempty"`
	Failures int                      `json:"failures,omitempty"`
	SyncedAt time.Time                `json:"synced_at,omitzero"`
	Tables   []host.DestinationStream `json:"tables"`
}

// A request asks a feed to do something. done receives exactly one answer.
type request struct {
	what   what
	change func(*definition) error // for changed
	of     StreamID                // for rebuild; the zero value means all
	done   chan error
}

type what int

const (
	syncNow what = iota
	changed
	rebuild
)

func (f *feed) load(ctx context.Context) error {
	d, err := f.o.Store.Document(ctx, store.Delivered, f.def.Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(d.Data, &f.status)
	}
	if err != nil {
		return fmt.Errorf("read how destination %s stands: %w", f.def.Name, err)
	}
	return nil
}

func (f *feed) definition() definition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.def
}

// A pass brings a destination up to date once, in a goroutine of its own.
type pass struct {
	began   time.Time
	cancel  context.CancelFunc
	ended   chan error
	asked   []chan error       // those who wait for it
	skip    map[StreamID]error // streams not to be tried
	blocked map[StreamID]error // streams blocked at its end
}

// loop runs passes and handles requests until ctx ends.
func (f *feed) loop(ctx context.Context) {
	wake, stop := f.o.Store.Watch("")
	defer stop()
	var running *pass
	var waiting []chan error // for the next pass
	rested := f.o.Now()      // time from which the next pass may begin
	halt := func() bool {    // stops a pass, if there is one, without counting it as failed
		if running == nil {
			return false
		}
		running.cancel()
		<-running.ended
		waiting, running = append(running.asked, waiting...), nil
		f.set(func() { f.busy = false })
		return true
	}
	defer func() {
		halt()
		f.closeSink()
		for _, w := range waiting {
			w <- context.Canceled
		}
	}()
	f.plan(f.o.Now())
	for {
		if running == nil && len(waiting) > 0 {
			running, waiting = f.begin(ctx, waiting), nil
		}
		var due <-chan time.Time
		var ended chan error
		if running != nil {
			ended = running.ended
		} else if next := f.due(); !next.IsZero() {
			due = time.After(time.Until(next)) // earlier ones are garbage collected, since Go 1.23
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
			if f.live() {
				f.plan(later(f.o.Now().Add(settle), rested))
			}
		case <-due:
			running = f.begin(ctx, nil)
		case err := <-ended:
			took := f.o.Now().Sub(running.began)
			rested = f.o.Now().Add(min(restTimes*took, longest))
			f.finish(ctx, running, err)
			for _, w := range running.asked {
				w <- nil
			}
			running = nil
		case q := <-f.asked:
			switch q.what {
			case syncNow:
				waiting = append(waiting, q.done)
			case changed:
				halt()
				f.closeSink()
				err := f.change(ctx, q.change)
				f.blocked = nil
				f.set(func() { f.status.Failures = 0 })
				f.plan(f.o.Now())
				q.done <- err
			case rebuild:
				halted := halt()
				f.closeSink() // what somebody removed is made anew
				err := f.clear(ctx, q.of)
				if err == nil {
					waiting = append(waiting, q.done)
					continue
				}
				q.done <- refused(err)
				if len(waiting) == 0 && (halted || !errors.As(err, new(*host.Refusal))) {
					running = f.begin(ctx, nil) // it may have been halted, or some tables cleared
				}
			}
		}
	}
}

// change stores a changed definition, unless another host now feeds the destination.
func (f *feed) change(ctx context.Context, do func(*definition) error) error {
	var next definition
	err := rewrite(ctx, f.o.Store, f.def.Name, func(def *definition) (bool, error) {
		if def.ID != f.def.ID || def.Epoch != f.def.Epoch {
			return false, f.over()
		}
		err := do(def)
		next = *def
		return true, err
	})
	if err == nil {
		f.set(func() { f.def = next })
	}
	return err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (f *feed) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *feed) due() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// live reports whether a commit should trigger a pass and none is planned for that yet.
func (f *feed) live() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.def.Terms.Cron == "" && (f.status.Failures == 0 && f.next.IsZero() ||
		len(f.blocked) > 0 && (f.next.IsZero() || f.next.Equal(f.retry)))
}

// plan schedules the next pass for t, or by the destination's cron expression, or not at all if it is paused or fed
// only on demand.
func (f *feed) plan(t time.Time) {
	f.set(func() {
		switch s, err := cron.ParseStandard(f.def.Terms.Cron); {
		case f.o.Idle || f.def.Paused:
			f.next = time.Time{}
		case f.def.Terms.Cron != "" && err == nil && f.status.Failures == 0:
			f.next = s.Next(f.o.Now().UTC())
		default:
			f.next = t
		}
	})
}

func (f *feed) begin(ctx context.Context, asked []chan error) *pass {
	f.set(func() { f.busy, f.next = true, time.Time{} })
	p := &pass{began: f.o.Now(), ended: make(chan error, 1), asked: asked}
	if asked == nil && p.began.Before(f.retry) {
		p.skip = f.blocked
	}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		defer p.cancel()
		p.ended <- f.bring(ctx, p)
	}()
	return p
}

// finish records the result of a pass and plans the next one.
func (f *feed) finish(ctx context.Context, p *pass, err error) {
	now := f.o.Now()
	f.blocked = p.blocked
	f.set(func() {
		f.busy = false
		if err == nil {
			f.status.Error, f.status.Failures, f.status.SyncedAt = "", 0, now.UTC()
			return
		}
		f.status.Error = sentence(err)
		if p.blocked == nil || p.skip == nil {
			f.status.Failures++
		}
	})
	wait := min(firstTry<<min(max(f.failures()-1, 0), 10), lastTry)
	switch {
	case err == nil && f.definition().Terms.Cron != "":
		f.plan(now)
	case errors.Is(err, ErrFenced): // whoever took over continues, unless the owner decides otherwise
		f.closeSink()
	case p.blocked != nil:
		if p.skip == nil {
			f.o.Log.Warn("destination_blocked", "destination", f.def.Name, "error", err)
			f.retry = now.Add(wait)
		}
		if next := f.due(); next.IsZero() || f.retry.Before(next) { // no commit arrived meanwhile
			f.plan(f.retry)
		}
	case err != nil:
		f.o.Log.Warn("destination_failed", "destination", f.def.Name, "error", err)
		f.closeSink()
		f.plan(now.Add(wait))
	}
	if err := f.save(ctx); err != nil && ctx.Err() == nil {
		f.o.Log.Error("destination_status_not_stored", "destination", f.def.Name, "error", err)
	}
}

func (f *feed) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status.Failures
}

func (f *feed) save(ctx context.Context) error {
	f.mu.Lock()
	data, err := json.Marshal(f.status)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.o.Store.Write(ctx, store.Write{Kind: store.Delivered, ID: f.def.Name, Data: data})
}

func (f *feed) closeSink() {
	if f.sink == nil {
		return
	}
	if err := f.sink.Close(); err != nil {
		f.o.Log.Warn("destination_not_closed", "destination", f.def.Name, "error", err)
	}
	f.sink, f.told = nil, nil
}

// open opens the destination unless it is open.
func (f *feed) open(ctx context.Context) error {
	if f.sink != nil {
		return nil
	}
	url, err := f.o.Secrets.Get(secretID(f.def))
	if err != nil {
		return fmt.Errorf("read its address from the vault: %w", err)
	}
	defer clear(url)
	kind, err := f.o.Kinds.Of(string(url))
	if err != nil {
		return err
	}
	sink, err := kind.Open(ctx, string(url), f.def.owner(f.o))
	if err != nil {
		return err
	}
	f.sink = sink
	return nil
}

// clear removes the table of a stream or, for the zero StreamID, all tables.
func (f *feed) clear(ctx context.Context, of StreamID) error {
	if err := f.open(ctx); err != nil {
		return err
	}
	have, err := f.sink.Holdings(ctx)
	if err != nil {
		return err
	}
	found := false
	for id := range have {
		if of != (StreamID{}) && of != id {
			continue
		}
		found = true
		if err := f.sink.Clear(ctx, id); err != nil {
			return err
		}
	}
	if !found && of != (StreamID{}) {
		return host.Invalid("stream", "unknown",
			"the destination has no table of %s; sluice destination show %s lists those that it has",
			abi.Clean(of.String()), f.def.Name)
	}
	return nil
}

// bring brings in everything that the store has now.
func (f *feed) bring(ctx context.Context, p *pass) error {
	if err := f.open(ctx); err != nil {
		return err
	}
	if def := f.definition(); def.Anew {
		if err := f.clear(ctx, StreamID{}); err != nil {
			return err
		}
		if err := f.change(ctx, func(def *definition) error { def.Anew = false; return nil }); err != nil {
			return err
		}
	}
	have, err := f.sink.Holdings(ctx)
	if err != nil {
		return err
	}
	wanted, about, err := f.wanted(ctx)
	if err != nil {
		return err
	}
	blocked := map[StreamID]error{}
	var first error // reason why one of them is blocked
	for _, w := range wanted {
		var holding *Holding
		if h, ok := have[w.StreamID]; ok {
			holding = &h
		}
		if holding == nil && w.Last == 0 {
			continue
		}
		err := p.skip[w.StreamID]
		if err == nil {
			err = Bring(ctx, f.o.Store, f.sink, w, holding, func(int) {})
		}
		switch one := Blocked(""); {
		case err == nil:
		case errors.Is(err, ErrForeign), errors.As(err, &one):
			blocked[w.StreamID], first = err, cmp.Or(first, err)
		default:
			return err
		}
	}
	if have, err = f.sink.Holdings(ctx); err != nil {
		return err
	}
	f.note(have, wanted, blocked)
	if err := f.tell(ctx, have, about); err != nil {
		return err
	}
	if len(blocked) > 0 {
		p.blocked = blocked
	}
	if len(blocked) > 1 {
		return fmt.Errorf("%d streams cannot be written, each for a reason of its own; the first: %w", len(blocked), first)
	}
	return first
}

// tell updates the table of streams if it changed.
func (f *feed) tell(ctx context.Context, have map[StreamID]Holding, about []Described) error {
	about = slices.DeleteFunc(about, func(d Described) bool { _, there := have[d.StreamID]; return !there })
	for i := range about {
		h := have[about[i].StreamID]
		about[i].Table, about[i].Mark = h.Table, h.Mark
	}
	if f.told != nil && slices.Equal(about, f.told) {
		return nil
	}
	now := f.o.Now()
	stamped := slices.Clone(about)
	for i := range stamped {
		stamped[i].SyncedAt = now
	}
	if err := f.sink.Describe(ctx, stamped); err != nil {
		return err
	}
	f.told = about
	return nil
}

// note stores what the destination has and which streams are blocked, to be shown even while it is unreachable.
func (f *feed) note(have map[StreamID]Holding, wanted []Wanted, blocked map[StreamID]error) {
	tables := []host.DestinationStream{}
	add := func(id StreamID, h Holding) {
		t := host.DestinationStream{ConnectionID: string(id.Connection), Stream: string(id.Stream), Table: h.Table,
			Mode: string(h.Mode), Version: h.Mark}
		if err := blocked[id]; err != nil {
			t.Error = sentence(err)
		}
		tables = append(tables, t)
	}
	for id, h := range have {
		add(id, h)
	}
	for _, w := range wanted {
		if _, there := have[w.StreamID]; !there && blocked[w.StreamID] != nil {
			add(w.StreamID, Holding{Mode: w.Mode})
		}
	}
	slices.SortFunc(tables, func(a, b host.DestinationStream) int {
		return cmp.Or(cmp.Compare(a.ConnectionID, b.ConnectionID), cmp.Compare(a.Stream, b.Stream))
	})
	f.set(func() { f.status.Tables = tables })
}

// wanted returns the streams that belong in the destination, and their descriptions.
func (f *feed) wanted(ctx context.Context) (out []Wanted, about []Described, err error) {
	terms := f.definition().Terms
	connections, err := f.o.Store.Connections(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list connections: %w", err)
	}
	for _, c := range connections {
		if c.Temporary || len(terms.Connections) > 0 && !slices.Contains(terms.Connections, string(c.ID)) {
			continue
		}
		streams, err := f.o.Store.Streams(ctx, c.ID)
		if err != nil {
			return nil, nil, fmt.Errorf("list streams of %s: %w", c.ID, err)
		}
		m, err := abi.ReadManifest(c.Manifest)
		if err != nil { // it was valid once, by earlier rules
			m = &abi.Manifest{}
		}
		last, err := f.o.Store.Runs(ctx, c.ID, "", 1)
		if err != nil {
			return nil, nil, fmt.Errorf("find the last run of %s: %w", c.ID, err)
		}
		open := f.opener(c.ID)
		for _, s := range streams {
			id := StreamID{c.ID, s.Stream}
			if len(terms.Streams) > 0 && !slices.Contains(terms.Streams, string(s.Stream)) &&
				!slices.Contains(terms.Streams, id.String()) {
				continue
			}
			mode := Mode(cmp.Or(terms.StreamModes[id.String()], terms.StreamModes[string(s.Stream)],
				terms.Mode, string(Current)))
			out = append(out, Wanted{StreamID: id, Since: c.CreatedAt, Spec: m.Stream(string(s.Stream)), Mode: mode,
				Flatten: terms.Flatten, Last: s.LastVersion, Open: open})
			d := Described{StreamID: id, Connector: string(c.ConnectorID), Version: m.Version, Records: s.Live,
				Deleted: s.Tombstones}
			if len(last) > 0 {
				d.LastRun = string(last[0].ID)
				if end := last[0].FinishedAt; end != nil {
					d.EndedAt = *end
				}
				outcome, _ := strictjson.ValueOf(last[0].Result).Member("outcome")
				d.Partial = outcome.Equal("partial")
			}
			about = append(about, d)
		}
	}
	return out, about, nil
}

// opener returns a function that opens contents of a connection, or nil if the destination gets none.
func (f *feed) opener(c store.ConnectionID) func(context.Context, store.Digest) (Content, error) {
	kept, err := store.FilesOf(f.o.Store)
	if !f.definition().Terms.Files || err != nil {
		return nil
	}
	return func(ctx context.Context, d store.Digest) (Content, error) { return kept.OpenFile(ctx, c, d) }
}

// shown returns the destination as far as it is known without reading the store.
func (f *feed) shown() host.Destination {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := host.Destination{Name: f.def.Name, Kind: f.def.Kind, URL: f.def.Shown, DestinationTerms: f.def.Terms,
		CreatedAt: f.def.CreatedAt, Paused: f.def.Paused,
		State: "idle", Error: f.status.Error, Tables: slices.Clone(f.status.Tables)}
	d.Mode = cmp.Or(d.Mode, string(Current))
	if f.o.Now().Before(f.def.SecretUntil) {
		d.PreviousSecretUntil = ptr(f.def.SecretUntil)
	}
	if d.Tables == nil {
		d.Tables = []host.DestinationStream{}
	}
	if !f.status.SyncedAt.IsZero() {
		d.SyncedAt = ptr(f.status.SyncedAt)
	}
	switch {
	case f.busy:
		d.State = "syncing"
	case f.def.Paused:
		d.State = "paused"
	case f.status.Failures > 0:
		d.State = "waiting"
	}
	switch {
	case f.orphan:
		d.State, d.Error = "waiting", "no host feeds it; host "+f.def.Host+" did last, and no other one reaches it so far"
	case f.o.Members != nil:
		d.HostID = f.def.Host
	}
	if d.State == "waiting" && !f.next.IsZero() {
		d.NextTry = ptr(f.next.UTC())
	}
	return d
}

// described is like shown and adds how far the destination is behind.
func (f *feed) described(ctx context.Context) (host.Destination, error) {
	d := f.shown()
	wanted, _, err := f.wanted(ctx)
	if err != nil {
		return d, err
	}
	for _, w := range wanted {
		i := slices.IndexFunc(d.Tables, func(t host.DestinationStream) bool {
			return t.ConnectionID == string(w.Connection) && t.Stream == string(w.Stream)
		})
		if i < 0 {
			d.Behind += w.Last
			continue
		}
		if w.Last > d.Tables[i].Version {
			d.Tables[i].Behind = w.Last - d.Tables[i].Version
		}
		d.Behind += d.Tables[i].Behind
	}
	return d, nil
}
