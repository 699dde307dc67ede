package app

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Times of looking at the runs of other hosts.
const (
	lookAnew = 2 * time.Second // how old what is shown may be
	lookWait = 2 * time.Second // for the other host
	lookKeep = time.Minute     // what nobody asks for any more is forgotten
)

// looks are the runs of other hosts that somebody here looks at: however many do, one asks.
type looks struct {
	mu  sync.Mutex // guards the map
	all map[store.RunID]*look
}

// A look is what was seen of one run.
type look struct {
	mu        sync.Mutex // held while one asks; guards what follows
	at        time.Time
	live      *host.LiveRun
	elsewhere *host.Member
}

// of returns what is known of a run, or asks.
func (ls *looks) of(ctx context.Context, p *peers, id store.RunID) (*host.LiveRun, *host.Member) {
	ls.mu.Lock()
	l := ls.all[id]
	if l == nil {
		for old, known := range ls.all {
			if known.mu.TryLock() {
				if time.Since(known.at) > lookKeep {
					delete(ls.all, old)
				}
				known.mu.Unlock()
			}
		}
		if l = (&look{at: time.Now().Add(-lookAnew)}); ls.all == nil {
			ls.all = map[store.RunID]*look{}
		}
		ls.all[id] = l
	}
	ls.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) >= lookAnew {
		l.live, l.elsewhere = p.lookAt(ctx, id)
		l.at = time.Now()
	}
	return l.live, l.elsewhere
}

// lookAt asks the host that has a run; nil, nil when none has.
func (p *peers) lookAt(ctx context.Context, id store.RunID) (*host.LiveRun, *host.Member) {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	m, err := p.holder(ctx, id)
	if err != nil || m == nil {
		return nil, nil
	}
	at := memberOf(*m)
	body, err := json.Marshal(id)
	if err != nil || len(m.Key) == 0 {
		return nil, &at
	}
	out, err := p.ask(ctx, m, command{Verb: "look", Principal: host.Who(ctx), Body: body})
	var live *host.LiveRun
	if err != nil || out.Body == nil || json.Unmarshal(out.Body, &live) != nil {
		return nil, &at
	}
	return live, &at
}

// look is LiveRun for another host.
func (rs *runs) look(_ context.Context, id store.RunID) (host.LiveRun, error) {
	l, ok := rs.LiveRun(id)
	if !ok {
		return l, store.ErrNotFound
	}
	return l, nil
}
