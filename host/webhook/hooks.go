package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

const (
	attempts = 64   // of all webhooks concurrently
	maxLanes = 4096 // of one webhook in memory
)

// Store is the part of a store.Store that webhooks need.
type Store interface {
	store.Documents
	Run(ctx context.Context, id store.RunID) (store.Run, error)
	Runs(ctx context.Context, connection store.ConnectionID, before store.RunID, limit int) ([]store.Run, error)
	Leases(ctx context.Context) ([]store.Lease, error)
	Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error)
	Watch(id store.RunID) (wake <-chan struct{}, stop func())
}

// Options are the dependencies and settings of Hooks.
type Options struct {
	Store   Store
	Secrets Secrets // required
	// Forbidden returns the reason why deliveries may not go to an address, or "". It must cover private, link-local,
	// metadata and multicast addresses. Required.
	Forbidden func(netip.Addr) string
	// AllowLoopback permits URLs of this machine's loopback, with http as well.
	AllowLoopback bool
	// Idle prevents deliveries before Begin.
	Idle bool
	// Alive returns an error while another host may be delivering instead of this one. It is called immediately before
	// anything is sent. nil means that there is no other host.
	Alive func() error
	// Changed returns a channel that wakes when another host may have changed a webhook; nil if there is none.
	Changed  func() (wake <-chan struct{}, stop func())
	Resolver Resolver // nil means the system's
	Version  string   // of the host, for the User-Agent header
	// Disabled is called once for a webhook that the host disabled, for the audit log. because is BecauseGone or
	// BecauseFailing. It may be nil.
	Disabled func(ctx context.Context, id, because string)
	// Observed is called with the outcome of every attempt: delivered, failed, or dropped if it was the last for its
	// event; and with disabled for a webhook. It must not block. It may be nil.
	Observed func(outcome string)
	Log      *slog.Logger // nil discards messages

	// For tests.
	tls  *tls.Config
	post func(context.Context, message) (int, error)
	most int
}

func (o *Options) complete() error {
	if o.Store == nil || o.Secrets == nil || o.Forbidden == nil {
		return errors.New("webhook: Store, Secrets and Forbidden are required")
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Disabled == nil {
		o.Disabled = func(context.Context, string, string) {}
	}
	if o.Observed == nil {
		o.Observed = func(string) {}
	}
	if o.most == 0 {
		o.most = maxLanes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// now is the time by which the store dates runs and events. Hosts that share it take turns, and their clocks may differ.
func (o *Options) now() time.Time { return store.Now(o.Store) }

// Hooks are the webhooks of an installation. It is safe for concurrent use.
type Hooks struct {
	o      Options
	gate   *gate
	post   func(context.Context, message) (int, error)
	room   chan struct{}
	rescan chan struct{}  // wakes watch, as the store does
	wg     sync.WaitGroup // of watch

	create sync.Mutex      // held while webhooks are added or loaded
	mu     sync.Mutex      // guards the fields below
	life   context.Context // of deliveries; nil before Begin
	end    context.CancelFunc
	serves map[string]*follower
	closed bool
}

// Open returns Hooks and, unless Idle is set, resumes deliveries. Close stops them.
func Open(ctx context.Context, o Options) (*Hooks, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	h := &Hooks{
		o: o, gate: &gate{o.Resolver, o.Forbidden, o.AllowLoopback, o.Alive}, post: o.post,
		room: make(chan struct{}, attempts), rescan: make(chan struct{}, 1), serves: map[string]*follower{},
	}
	if h.post == nil {
		h.post = newPoster(h.gate, "Sluice/"+o.Version, o.tls).post
	}
	if o.Idle {
		return h, nil
	}
	if err := h.Begin(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Begin starts deliveries, until Pause or Close. Only one process at a time may deliver.
func (h *Hooks) Begin(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	h.mu.Lock()
	h.life, h.end = life, end
	h.mu.Unlock()
	if err := h.load(ctx); err != nil {
		h.Pause()
		return err
	}
	h.wg.Go(func() { h.watch(life) })
	return nil
}

// Pause stops all attempts. What was not delivered will be after the next Begin, here or on another host.
func (h *Hooks) Pause() {
	h.mu.Lock()
	if h.end != nil {
		h.end()
	}
	h.mu.Unlock()
	h.wg.Wait()
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.serves))
	clear(h.serves)
	h.life, h.end = nil, nil
	h.mu.Unlock()
	for _, f := range all {
		f.stop()
	}
}

// Close is like Pause but final.
func (h *Hooks) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Pause()
	return nil
}

// load starts serving active webhooks that are not yet served, stops serving others, and deletes what is left of those
// that no longer exist.
func (h *Hooks) load(ctx context.Context) error {
	h.create.Lock() // a webhook being added must not be served twice or considered gone
	defer h.create.Unlock()
	all, err := h.all(ctx)
	if err != nil {
		return err
	}
	live := map[string]bool{}
	for _, s := range all {
		if err := h.hide(ctx, s); err != nil {
			return err
		}
		if s.Because != "" {
			continue
		}
		live[s.ID] = true
		if err := h.resume(ctx, s); err != nil {
			return err
		}
	}
	h.mu.Lock()
	var gone []*follower
	for id, f := range h.serves {
		if !live[id] {
			gone = append(gone, f)
			delete(h.serves, id)
		}
	}
	h.mu.Unlock()
	for _, f := range gone {
		f.stop()
	}
	return errors.Join(h.sweep(ctx, live), h.sweepSecrets(all))
}

// resume serves a webhook if its secret can be read. Otherwise the webhook waits for a host that can read it: no event
// is lost, and nothing is sent unsigned.
func (h *Hooks) resume(ctx context.Context, s *stored) error {
	_, k, err := h.signing(ctx, s.ID)
	if err != nil {
		h.o.Log.Error("webhook_unsigned", "webhook", s.ID, "error", err, "next",
			"restore the vault's key, or delete this webhook and make it again")
		return nil
	}
	h.mu.Lock()
	f := h.serves[s.ID]
	h.mu.Unlock()
	if f == nil {
		return h.serve(ctx, s, k)
	}
	keys, err := k.keys() // the secret may have been replaced
	if err == nil {
		f.keys.Store(&keys)
	}
	return err
}

// sweep deletes what interrupted deletions left.
func (h *Hooks) sweep(ctx context.Context, live map[string]bool) error {
	for after := ""; ; {
		docs, err := h.o.Store.Documents(ctx, store.DocumentQuery{Kind: store.Deliveries, After: after, Limit: 1})
		if err != nil || len(docs) == 0 {
			return err
		}
		id, _ := owner(docs[0].ID)
		if !live[id] {
			if err := forget(ctx, h.o.Store, id); err != nil {
				return err
			}
		}
		after = id + "0" // sorts after all ids that begin with id/
	}
}

func (h *Hooks) serve(ctx context.Context, s *stored, k signing) error {
	h.mu.Lock()
	idle := h.life == nil
	h.mu.Unlock()
	if idle {
		return nil
	}
	keys, err := k.keys()
	if err != nil {
		return fmt.Errorf("webhook %s: %w", s.ID, err)
	}
	f := &follower{
		hook: *s, store: h.o.Store, post: h.post, now: h.o.now, slots: h.room, most: h.o.most, rescan: h.wakeScan,
		log: h.o.Log, observe: h.o.Observed, audit: h.o.Disabled,
	}
	f.keys.Store(&keys)
	if err := f.load(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.life == nil || h.life.Err() != nil {
		return store.ErrClosed
	}
	if h.serves[s.ID] != nil {
		return nil
	}
	h.serves[s.ID] = f
	f.start(h.life)
	return nil
}

func (h *Hooks) followers() []*follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*follower, 0, len(h.serves))
	for id, f := range h.serves {
		select {
		case <-f.gone:
			if !h.closed && h.life != nil && h.life.Err() == nil {
				delete(h.serves, id) // it was disabled
				continue
			}
		default:
		}
		out = append(out, f)
	}
	return out
}

// wakeScan wakes watch.
func (h *Hooks) wakeScan() {
	select {
	case h.rescan <- struct{}{}:
	default:
	}
}
