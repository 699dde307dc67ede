//go:build unix

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/postgres"
)

// An asked is what a host asks of the store about a connection.
type asked struct {
	do         string // claim, commit, end, take over, look
	connection store.ConnectionID
	run        store.RunID
	fence      uint64
}

// A told is what the store answers. An answer that is none may stand for either.
type told struct {
	none, ok bool
	run      store.RunID // that a look saw
	fence    uint64      // of a claim, a takeover or a look
	sequence uint64      // of the event of a commit
}

// A held is what the store knows of a connection.
type held struct {
	run   store.RunID // "" for no run
	fence uint64
	next  uint64 // sequence
}

// leases is what claims, commits, ends and takeovers of one connection do to it.
var leases = porcupine.NondeterministicModel{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		by := map[store.ConnectionID][]porcupine.Operation{}
		for _, o := range all {
			c := o.Input.(asked).connection
			by[c] = append(by[c], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init:  func() []any { return []any{held{}} },
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v: %+v", in, out)
	},
	Step: func(state, in, out any) []any {
		h, q, a := state.(held), in.(asked), out.(told)
		then, fits := h.after(q)
		switch {
		case a.none && fits:
			return []any{h, then}
		case a.none, !a.ok && !fits && q.do != "look":
			return []any{h}
		case !a.ok || !fits:
			return nil
		}
		switch q.do {
		case "look":
			if a.run != h.run || a.run != "" && a.fence != h.fence {
				return nil
			}
		case "commit", "end":
			if a.sequence != h.next {
				return nil
			}
		default:
			if a.fence != then.fence {
				return nil
			}
		}
		return []any{then}
	},
}

// after is what becomes of h if the store does what is asked; it has to refuse unless it fits.
func (h held) after(q asked) (then held, fits bool) {
	current := h.run == q.run && h.fence == q.fence
	switch q.do {
	case "claim":
		return held{q.run, h.fence + 1, 0}, h.run == ""
	case "commit":
		return held{h.run, h.fence, h.next + 1}, current
	case "end":
		return held{"", h.fence, 0}, current
	case "take over":
		return held{h.run, h.fence + 1, h.next}, current
	}
	return h, true // a look
}

// A claimant is one host as far as its store goes. It ends and begins anew when others remove it.
type claimant struct {
	t     *testing.T
	n     int
	rand  *rand.Rand
	url   string
	store store.Store
	count *atomic.Int64 // names runs and events of all
	began time.Time
	seen  []porcupine.Operation
}

func (c *claimant) open() {
	until(c.t, "a store is opened", func() (ok bool) {
		s, err := drivers.Open(c.url,
			drivers.Options{Self: store.Member{ID: fmt.Sprintf("host-%d", c.n), Epoch: fmt.Sprintf("boot-%d", c.count.Add(1))}})
		c.store = s
		return err == nil
	})
}

// ask notes what is asked and what the store answers.
func (c *claimant) ask(q asked, do func() (told, error)) (told, bool) {
	call := time.Since(c.began)
	a, err := do()
	back := int64(time.Since(c.began))
	var active *store.ActiveError
	switch {
	case err == nil:
		a.ok = true
	case errors.As(err, &active), errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrRunTerminal),
		errors.Is(err, store.ErrNotFound):
	default: // it may have been done
		a, back = told{none: true}, math.MaxInt64
	}
	c.seen = append(c.seen, porcupine.Operation{ClientId: c.n, Input: q, Call: int64(call), Output: a, Return: back})
	return a, a.ok
}

func (c *claimant) commit(l store.Lease, do string) bool {
	n := c.count.Add(1)
	kind := map[string]string{"commit": "run.message", "end": "run.failed"}[do]
	_, ok := c.ask(asked{do, l.ConnectionID, l.RunID, l.Fence}, func() (told, error) {
		r, err := c.store.Submit(c.t.Context(), &store.Commit{Lease: l, End: do == "end",
			Events: []store.Event{{ID: store.EventID(fmt.Sprintf("evt_%d", n)), Type: kind, RunID: l.RunID,
				Data: json.RawMessage(`{}`)}}})
		if err != nil {
			return told{}, err
		}
		ack, err := r.Result()
		return told{sequence: ack.FirstSequence}, err
	})
	return ok
}

// turn claims a connection and works on it, or, where another has it, looks who, and sometimes
// takes it over.
func (c *claimant) turn(id store.ConnectionID) {
	ctx := c.t.Context()
	var l store.Lease
	run := store.RunID(fmt.Sprintf("run_%d", c.count.Add(1)))
	_, ok := c.ask(asked{do: "claim", connection: id, run: run}, func() (told, error) {
		var err error
		l, err = c.store.Acquire(ctx, store.Run{ID: run, ConnectionID: id, Status: "active"}, "host", "boot", time.Minute)
		return told{fence: l.Fence}, err
	})
	if !ok {
		c.ask(asked{do: "look", connection: id}, func() (told, error) {
			all, err := c.store.Leases(ctx)
			l = store.Lease{}
			for _, x := range all {
				if x.ConnectionID == id {
					l = x
				}
			}
			return told{run: l.RunID, fence: l.Fence}, err
		})
		if l.RunID == "" || c.rand.IntN(3) > 0 {
			return
		}
		if _, ok = c.ask(asked{"take over", id, l.RunID, l.Fence}, func() (told, error) {
			taken, err := c.store.TakeOver(ctx, l, "host", "boot", time.Minute)
			l = taken
			return told{fence: taken.Fence}, err
		}); !ok {
			return
		}
	}
	for range c.rand.IntN(4) {
		if !c.commit(l, "commit") {
			return
		}
	}
	if c.rand.IntN(8) > 0 { // or whoever comes next takes it over
		c.commit(l, "end")
	}
}

func (c *claimant) work(turns int) {
	c.open()
	for range turns {
		c.turn(store.ConnectionID(fmt.Sprint("c", c.rand.IntN(2))))
		if c.store.(store.Members).Err() != nil {
			_ = c.store.Close() // it was removed
			c.open()
		}
	}
	_ = c.store.Close()
}

// TestFlakyHistory has hosts claim the same connections, commit, and take runs from each other, while
// connections break around COMMIT, hosts are cut off until others remove them, and PostgreSQL is
// stopped at once. There has to be one order of all of it that explains every answer.
func TestFlakyHistory(t *testing.T) {
	t.Parallel()
	c := campaign.New(t, "history of claims, commits and takeovers")
	server := postgres.Start(t, "fsync=off", "full_page_writes=off")
	turns := 20
	if campaign.Soak() {
		turns = 60
	}
	for range max(1, c.Length(1, 1)/10) {
		database, count, began := server.Database(t), &atomic.Int64{}, time.Now()
		hosts, proxies := make([]*claimant, 3), make([]*postgres.Proxy, 3)
		for i := range hosts {
			proxies[i] = server.Proxy(t)
			hosts[i] = &claimant{t: t, n: i, rand: rand.New(rand.NewPCG(c.Uint64(), 0)), count: count, began: began,
				url: proxies[i].Through(t, database) + "&durability=weak&lease=2s&connect_timeout=2"}
		}
		var working sync.WaitGroup
		over := make(chan struct{})
		for _, h := range hosts {
			working.Go(func() { h.work(turns) })
		}
		go func() { working.Wait(); close(over) }()
		for struck := 0; ; struck++ {
			select {
			case <-over:
			case <-time.After(time.Duration(200+c.IntN(400)) * time.Millisecond):
				strike(t, c, server, proxies[c.IntN(3)])
				continue
			}
			break
		}
		var all []porcupine.Operation
		for _, h := range hosts {
			all = append(all, h.seen...)
		}
		c.Checked(len(all))
		model := leases.ToModel()
		if result, info := porcupine.CheckOperationsVerbose(model, all, 0); result != porcupine.Ok {
			path := t.ArtifactDir() + "/history.html"
			c.Torn("no order explains what the hosts saw (%v); %s shows it: %v", result, path,
				porcupine.VisualizePath(model, info, path))
		}
	}
}

// strike lets something happen between a host and its server.
func strike(t *testing.T, c *campaign.Campaign, server *postgres.Server, p *postgres.Proxy) {
	switch c.IntN(6) {
	case 0, 1:
		p.CutNext(postgres.Before)
	case 2, 3:
		p.CutNext(postgres.After)
	case 4:
		thaw := p.Freeze()
		time.Sleep(time.Duration(c.IntN(5000)) * time.Millisecond) // the lease is 2 s
		thaw()
	case 5:
		if err := errors.Join(server.Crash(), server.Start()); err != nil {
			t.Fatal(err)
		}
	}
	c.Cycle()
}

// TestHistoryIsChecked: the model refuses what must not happen.
func TestHistoryIsChecked(t *testing.T) {
	op := func(at int64, q asked, a told) porcupine.Operation {
		return porcupine.Operation{Input: q, Call: at, Output: a, Return: at + 5}
	}
	claim := op(0, asked{do: "claim", run: "r"}, told{ok: true, fence: 1})
	lost := op(10, asked{do: "commit", run: "r", fence: 1}, told{none: true})
	lost.Return = math.MaxInt64
	for name, wrong := range map[string]struct {
		history []porcupine.Operation
		fine    bool
	}{
		"in order": {[]porcupine.Operation{claim, op(10, asked{do: "commit", run: "r", fence: 1}, told{ok: true})},
			true},
		"two runs": {[]porcupine.Operation{claim, op(10, asked{do: "claim", run: "s"}, told{ok: true, fence: 2})},
			false},
		"an old fence": {[]porcupine.Operation{claim,
			op(10, asked{do: "take over", run: "r", fence: 1}, told{ok: true, fence: 2}),
			op(20, asked{do: "commit", run: "r", fence: 1}, told{ok: true})}, false},
		"applied twice": {[]porcupine.Operation{claim,
			op(10, asked{do: "commit", run: "r", fence: 1}, told{ok: true, sequence: 1})}, false},
		"a lost answer, done": {[]porcupine.Operation{claim, lost,
			op(20, asked{do: "commit", run: "r", fence: 1}, told{ok: true, sequence: 1})}, true},
		"a lost answer, not": {[]porcupine.Operation{claim, lost,
			op(20, asked{do: "commit", run: "r", fence: 1}, told{ok: true})}, true},
		"a stale look": {[]porcupine.Operation{claim, op(10, asked{do: "look"}, told{ok: true})}, false},
	} {
		if got := porcupine.CheckOperations(leases.ToModel(), wrong.history); got != wrong.fine {
			t.Errorf("%s: the checker says %v", name, got)
		}
	}
}
