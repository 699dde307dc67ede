package app

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Times of looks at runs of other hosts.
const (
	lookAnew = 2 * time.Second // maximal age of a cached look
	lookWait = 2 * time.Second // for the response of the other host
	lookKeep = time.Minute     // until an unused look is dropped
)

// looks caches looks at runs of other hosts, so that many viewers cause one request.
type looks struct {
	mu  sync.Mutex // guards the map
	all map[store.RunID]*look
}

// A look is the last known state of one run.
type look struct {
	mu        sync.Mutex // held during a request; guards what follows
	at        time.Time
	live      *host.LiveRun
	elsewhere *host.Member
}

// of returns the state of a run, from the cache while it is fresh.
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

// lookAt asks the host that performs a run. It returns nil, nil if no other host does.
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

// look is LiveRun at the request of another host.
func (rs *runs) look(_ context.Context, id store.RunID) (host.LiveRun, error) {
	l, ok := rs.LiveRun(id)
	if !ok {
		return l, store.ErrNotFound
	}
	return l, nil
}
