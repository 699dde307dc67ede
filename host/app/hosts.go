package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

// hosts implements host.Hosts, and this host's part in the work of hosts that share a store.
type hosts struct {
	*directory
	runs    *runs
	peers   *peers        // nil if members is nil
	members store.Members // nil for a host that shares no store
	stop    func()        // ends the background goroutines

	mu    sync.Mutex // guards what follows
	about store.About
	known []store.Member // members as of at
	at    time.Time
}

var (
	_ host.Hosts     = (*hosts)(nil)
	_ schedule.Hosts = (*hostsOfSchedules)(nil)
)

// Announce publishes a change of what other hosts know of this one. It does nothing for a host that shares no
// store.
func (hs *hosts) Announce(ctx context.Context, change func(*store.About)) error {
	if hs.members == nil {
		return nil
	}
	hs.mu.Lock()
	change(&hs.about)
	about := hs.about
	hs.mu.Unlock()
	return hs.members.Announce(ctx, about)
}

// Removed returns a channel that is closed once other hosts have removed this one, and a function that returns
// why. Both are nil for a host that shares no store.
func (hs *hosts) Removed() (removed <-chan struct{}, because func() error) {
	if hs.members == nil {
		return nil, nil
	}
	return hs.members.Removed(), hs.members.Err
}

// Changed returns a channel that is signalled after a host or a document of the kind changed. It is nil for a
// host that shares no store.
func (hs *hosts) Changed(kind store.Kind) (wake <-chan struct{}, stop func()) {
	if hs.members == nil {
		return nil, func() {}
	}
	return hs.members.Changed(kind)
}

// Leads reports whether this host performs the tasks that only one of all hosts performs.
func (hs *hosts) Leads(ctx context.Context) (bool, error) {
	if hs.members == nil {
		return true, nil
	}
	leads := false
	all, err := hs.list(ctx)
	if err == nil && !hs.draining(all) && hs.signs(all) {
		leads, err = hs.members.Lead(ctx)
	}
	return leads, err
}

// signs reports whether this host has access to the keys that sign webhooks, or no host has.
func (hs *hosts) signs(all []store.Member) bool {
	return !slices.ContainsFunc(all, opensVault) ||
		slices.ContainsFunc(all, func(m store.Member) bool { return m.Epoch == hs.Epoch && opensVault(m) })
}

// Yield lets another host lead, once this one has stopped the leader's tasks.
func (hs *hosts) Yield(ctx context.Context) error {
	if hs.members == nil {
		return nil
	}
	return hs.members.Yield(ctx)
}

// fresh is the maximal age of the cached list of hosts.
const fresh = 500 * time.Millisecond

// list returns the hosts, from a cache that is at most fresh old.
func (hs *hosts) list(ctx context.Context) ([]store.Member, error) {
	hs.mu.Lock()
	defer hs.mu.Unlock() // only one of many callers reads
	if time.Since(hs.at) < fresh {
		return hs.known, nil
	}
	all, err := hs.members.Members(ctx)
	if err != nil {
		return nil, err
	}
	hs.known, hs.at = all, time.Now()
	return all, nil
}

// alive reports whether the start of a host with this epoch is still running.
func (hs *hosts) alive(ctx context.Context, epoch string) (bool, error) {
	all, err := hs.list(ctx)
	return slices.ContainsFunc(all, func(m store.Member) bool { return m.Epoch == epoch }), err
}

func (hs *hosts) draining(all []store.Member) bool {
	return slices.ContainsFunc(all, func(m store.Member) bool { return m.Epoch == hs.Epoch && m.Draining })
}

// open refuses a start while this host is drained.
func (hs *hosts) open(ctx context.Context) error {
	if hs.members == nil {
		return nil
	}
	all, err := hs.list(ctx)
	if err != nil {
		return err
	}
	if hs.draining(all) {
		return host.Refuse("unavailable", "this host is being drained; start the run at another one").With("draining", true)
	}
	return nil
}

// begin announces this host and starts its background work, which end stops.
func (hs *hosts) begin(ctx context.Context) error {
	err := hs.Announce(ctx, func(a *store.About) {
		a.Version, a.Capacity, a.Key = ThisVersion().Version, hs.runs.controller.Stats().Runs,
			hs.peers.key.PublicKey().Bytes()
	})
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { hs.watch(watching) })
	work.Go(func() { hs.handRuns(watching) })
	work.Go(func() { hs.peers.listen(watching) })
	work.Go(func() { hs.watchVault(watching) })
	hs.stop = func() { stop(); work.Wait() }
	return err
}

func (hs *hosts) end() {
	if hs.stop != nil {
		hs.stop()
	}
}

// watch reconciles runs whenever a host changes, so that those of hosts that are gone are ended or taken over,
// until ctx ends. The controller finds later what it misses.
func (hs *hosts) watch(ctx context.Context) {
	wake, stop := hs.members.Changed("")
	defer stop()
	for {
		select {
		case <-wake:
		case <-hs.members.Removed():
			return
		case <-ctx.Done():
			return
		}
		if err := hs.runs.wake(ctx); err != nil && ctx.Err() == nil {
			hs.Options.Log.Error("runs_of_other_hosts_not_ended", "error", err)
		}
	}
}

// Hosts implements host.Hosts.
func (hs *hosts) Hosts(ctx context.Context) ([]host.Member, error) {
	leases, err := hs.Store.Leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("list active runs: %w", err)
	}
	runs := map[string][]string{}
	for _, l := range leases {
		runs[l.HostID] = append(runs[l.HostID], string(l.RunID))
	}
	if hs.members == nil {
		stats := hs.runs.RunStats()
		name, _ := os.Hostname()
		return []host.Member{{HostID: hs.ID, Name: name, Version: ThisVersion().Version, Labels: []string{},
			Capacity: stats.Runs, Runs: stats.Accepted, RunIDs: listed(runs[hs.ID]),
			Admitted: true, Leads: true, Self: true, JoinedAt: hs.started.UTC(), SeenAt: time.Now().UTC()}}, nil
	}
	all, err := hs.members.Members(ctx)
	if err != nil {
		return nil, err
	}
	leads, err := hs.members.Leader(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]host.Member, 0, len(all))
	for _, m := range all {
		one := memberOf(m)
		one.RunIDs, one.Leads, one.Self = listed(runs[m.ID]), m.Epoch == leads, m.Epoch == hs.Epoch
		out = append(out, one)
	}
	return out, nil
}

// memberOf converts a member, without what is known only from elsewhere. Texts come from another process and are
// cleaned.
func memberOf(m store.Member) host.Member {
	one := host.Member{HostID: m.ID, Name: abi.Clean(m.Name), Version: abi.Clean(m.Version),
		Labels: []string{}, RunIDs: []string{},
		Capacity: m.Capacity, Runs: m.Runs, Admitted: opensVault(m), Draining: m.Draining,
		JoinedAt: m.JoinedAt, SeenAt: m.SeenAt}
	if u, err := url.Parse(m.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		one.URL = m.URL
	}
	for _, l := range m.Labels {
		one.Labels = append(one.Labels, abi.Clean(l))
	}
	return one
}

// LostHosts implements host.Hosts.
func (hs *hosts) LostHosts(ctx context.Context) ([]host.Member, error) {
	if hs.members == nil {
		return nil, nil
	}
	all, err := hs.members.Lost(ctx)
	out := make([]host.Member, 0, len(all))
	for _, m := range all {
		out = append(out, memberOf(m))
	}
	return out, err
}

// listed copies a list so that it is [] rather than null in JSON.
func listed(all []string) []string { return append([]string{}, all...) }

// DrainHost implements host.Hosts.
func (hs *hosts) DrainHost(ctx context.Context, id string, on bool) (host.Member, error) {
	if hs.members == nil {
		return host.Member{}, host.Refuse("conflict",
			"this host has its store to itself, so nobody could take its work; stop it, which lets its runs end")
	}
	e := by(ctx, audit.Event{Action: audit.HostDrained, Target: abi.Cut(abi.Clean(id), 80), Outcome: audit.Done,
		Details: []audit.Detail{audit.Code(map[bool]string{true: "on", false: "off"}[on])}})
	if err := hs.audited(e, func() error { return hs.members.Drain(ctx, id, on) }); err != nil {
		return host.Member{}, err
	}
	hs.mu.Lock()
	hs.at = time.Time{}
	hs.mu.Unlock()
	all, err := hs.Hosts(ctx)
	for _, m := range all {
		if m.HostID == id {
			return m, err
		}
	}
	return host.Member{}, cmp.Or(err, store.ErrNotFound)
}

// hostsOfSchedules decides which host starts a scheduled run.
type hostsOfSchedules struct {
	*hosts
	source schedule.Source
}

// Self implements schedule.Hosts.
func (hs *hostsOfSchedules) Self() string { return hs.Epoch }

// Alive implements schedule.Hosts.
func (hs *hostsOfSchedules) Alive(ctx context.Context, epoch string) (bool, error) {
	return hs.alive(ctx, epoch)
}

// Changed implements schedule.Hosts.
func (hs *hostsOfSchedules) Changed() (<-chan struct{}, func()) {
	return hs.members.Changed(store.Schedules)
}

// Delays of Turn.
const (
	passOver  = 2 * time.Second  // until it is the turn of the next host in the order
	unfitWait = 20 * time.Second // until a host that cannot run a connection reports that itself
)

// Turn implements schedule.Hosts. The hosts that can run a connection are drawn in a random order that is the
// same on all hosts and favours those with free capacity. The first may start at once, each further one passOver
// later.
func (hs *hostsOfSchedules) Turn(ctx context.Context, id store.ConnectionID, due time.Time) (time.Duration, error) {
	all, err := hs.list(ctx)
	if err != nil {
		return 0, err
	}
	c, err := hs.Store.Connection(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	late := hs.members.Now().Sub(due)
	place := placeOf(all, hs.Epoch, fitting(c), string(id)+due.String())
	if place < 0 {
		if late > unfitWait && !slices.ContainsFunc(all, fitting(c)) {
			return 0, nil // no host fits, and one has to report that
		}
		return passOver, nil
	}
	if wait := time.Duration(place)*passOver - late; wait > 0 {
		return wait, nil
	}
	if len(all) == 1 || late > unfitWait {
		return 0, nil
	}
	now, err := hs.source.ScheduledConnection(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && now.NotReady == "" &&
		!slices.ContainsFunc(c.Approved.Mounts, unreachable) && hs.runs.controller.Full() == nil {
		return 0, nil
	}
	return passOver, err
}

// Fits implements schedule.Hosts.
func (hs *hosts) Fits(ctx context.Context, id store.ConnectionID) (bool, error) {
	c, err := hs.Store.Connection(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && hs.fits(c) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	all, err := hs.list(ctx)
	return len(candidates(all, hs.Epoch, fitting(c))) == 0, err
}

func unreachable(m store.Mount) bool { return !filesystem.Reaches(m) }

// wantsSecret reports whether runs of a connection may be given a secret.
func wantsSecret(c store.Connection) bool {
	m, err := abi.ReadManifest(c.Manifest)
	return err != nil || len(run.SecretFields(m)) > 0
}

// placeOf returns the position, from 0, of a host in the order in which hosts may start a run; -1 if it may not.
func placeOf(all []store.Member, epoch string, fits func(store.Member) bool, draw string) int {
	type drawn struct {
		epoch string
		by    float64
	}
	var order []drawn
	for _, m := range all {
		if m.Draining || m.Capacity == 0 || !fits(m) {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(draw + "\x00" + m.Epoch))
		x := mix(h.Sum64())
		uniform := (float64(x>>11) + 0.5) / (1 << 53)
		order = append(order, drawn{m.Epoch, -math.Log(uniform) / float64(max(1, m.Capacity-m.Runs))})
	}
	slices.SortFunc(order, func(a, b drawn) int { return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.epoch, b.epoch)) })
	return slices.IndexFunc(order, func(d drawn) bool { return d.epoch == epoch })
}

// mix spreads a hash over all its bits.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
