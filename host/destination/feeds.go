package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/private"
	"github.com/sluicehost/sluice/store"
)

// maxDestinations bounds the number of destinations.
const maxDestinations = 64

// Store is the source of the records, and holds the definitions.
type Store interface {
	store.Documents
	store.Records
	Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error)
	Connections(ctx context.Context) ([]store.Connection, error)
	Runs(ctx context.Context, connection store.ConnectionID, before store.RunID, limit int) ([]store.Run, error)
	Watch(id store.RunID) (wake <-chan struct{}, stop func())
}

// Secrets stores URLs with their credentials.
type Secrets interface {
	Set(id string, secret []byte) error
	Get(id string) ([]byte, error)
	Remove(id string) error
}

// Options are the dependencies and settings of Feeds.
type Options struct {
	Store   Store
	Secrets Secrets
	Kinds   Kinds
	Host    string // this host's lasting id
	DataDir string // the host's own, where destinations are not allowed; "" for none
	Idle    bool   // feed only on demand
	// Members are the hosts that share the store, of which one at a time feeds a destination; nil if this host does not
	// share it.
	Members store.Members
	// Audited runs do and records action and the name of the destination in the audit log; nil only runs do.
	Audited func(ctx context.Context, action, name string, do func() error) error
	Log     *slog.Logger // nil discards messages

	Now func() time.Time // nil means the clock of Store
}

// Feeds implements host.Destinations with the destinations that this host feeds. It is safe for concurrent use.
type Feeds struct {
	o    Options
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex // guards feeds; held while one is added or removed
	feeds map[string]*feed
}

var _ host.Destinations = (*Feeds)(nil)

// A definition is a destination as it is stored.
type definition struct {
	ID    string `json:"id"` // names its secret and marks
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Shown string `json:"url"`
	feeder
	CreatedAt time.Time `json:"created_at"`
	Paused    bool      `json:"paused,omitempty"`
	// SecretUntil is when the secret before the last rotation expires.
	SecretUntil time.Time `json:"secret_until,omitzero"`
	// Anew means that the destination's marks refer to versions of another host, so everything is brought in again.
	Anew  bool                  `json:"anew,omitempty"`
	Terms host.DestinationTerms `json:"terms"`
}

// Open starts feeding the destinations in the store, until Close.
func Open(ctx context.Context, o Options) (*Feeds, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() time.Time { return store.Now(o.Store) }
	}
	if o.Audited == nil {
		o.Audited = func(_ context.Context, _, _ string, do func() error) error { return do() }
	}
	fs := &Feeds{o: o, feeds: map[string]*feed{}}
	fs.life, fs.end = context.WithCancel(context.WithoutCancel(ctx))
	if o.Members != nil && !o.Idle {
		if err := fs.share(ctx); err != nil {
			return nil, err
		}
		fs.wg.Go(func() { fs.tend(fs.life) })
		return fs, nil
	}
	defs, err := fs.definitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, def := range defs {
		if o.Members == nil {
			err = fs.start(ctx, def)
		} else if def.Host == o.Host { // another host's are left to one that stays
			err = fs.take(ctx, def.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return fs, nil
}

// definitions returns all destinations in the store.
func (fs *Feeds) definitions(ctx context.Context) (defs []definition, err error) {
	docs, err := fs.o.Store.Documents(ctx, store.DocumentQuery{Kind: store.Destinations, Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("list destinations: %w", err)
	}
	for _, d := range docs {
		var def definition
		if err := json.Unmarshal(d.Data, &def); err != nil {
			return nil, fmt.Errorf("read destination %s: %w", d.ID, err)
		}
		defs = append(defs, def)
	}
	return defs, nil
}

// Close stops all feeding. A step in progress either completes or has no effect.
func (fs *Feeds) Close() {
	fs.end()
	fs.wg.Wait()
}

// start starts the feed of a definition.
func (fs *Feeds) start(ctx context.Context, def definition) error {
	f := &feed{o: fs.o, def: def, asked: make(chan request), sink: nil}
	if err := f.load(ctx); err != nil {
		return err
	}
	fs.feeds[def.Name] = f
	life, end := context.WithCancel(fs.life)
	f.end, f.gone = end, make(chan struct{})
	fs.wg.Go(func() {
		defer close(f.gone)
		f.loop(life)
	})
	return nil
}

func secretID(def definition) string { return "dst_" + def.ID }

// AddDestination implements host.Destinations.
func (fs *Feeds) AddDestination(ctx context.Context, q host.NewDestination) (d host.Destination, err error) {
	var f *feed
	err = fs.o.Audited(ctx, "destination.added", q.Name, func() error {
		f, err = fs.add(ctx, q)
		return err
	})
	if err != nil {
		return d, err
	}
	return f.described(ctx)
}

func (fs *Feeds) add(ctx context.Context, q host.NewDestination) (*feed, error) {
	if !abi.IsSlug(q.Name) {
		return nil, host.Invalid("name", "slug", "want ^[a-z0-9][a-z0-9_-]{0,63}$")
	}
	if err := checkTerms(q.DestinationTerms); err != nil {
		return nil, err
	}
	kind, err := fs.o.Kinds.Of(q.URL)
	if err != nil {
		return nil, host.Invalid("url", "scheme_unknown", "%v", err)
	}
	shown, err := kind.Check(q.URL, fs.o.DataDir)
	if err != nil {
		return nil, host.Invalid("url", "url", "%v", err)
	}
	if err := fs.known(ctx, q.DestinationTerms); err != nil {
		return nil, err
	}
	if err := fs.room(q.Name); err != nil {
		return nil, err
	}
	now := fs.o.Now().UTC()
	def := definition{ID: fmt.Sprintf("%s-%d", q.Name, now.UnixNano()), Name: q.Name,
		Kind: strings.TrimRight(kind.Scheme(), ":/"), Shown: shown, CreatedAt: now,
		Terms: q.DestinationTerms, Anew: q.TakeOver}
	if m := fs.o.Members; m != nil {
		def.feeder = feeder{Host: fs.o.Host, Epoch: m.Self().Epoch}
	}
	sink, err := kind.Open(ctx, q.URL,
		Owner{Host: fs.o.Host, Destination: q.Name, TakeOver: q.TakeOver, Marks: marks{fs.o.Store, def.ID}})
	if err != nil {
		return nil, refused(err)
	}
	_, keeps := sink.(FileKeeper)
	if err := sink.Close(); err != nil {
		return nil, refused(err)
	}
	if q.Files && !keeps {
		return nil, host.Invalid("files", "kind", "this kind of destination is told the digests of files; leave files out")
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.free(q.Name); err != nil { // again, because mu was not held meanwhile
		return nil, err
	}
	data, err := json.Marshal(def)
	if err == nil {
		err = fs.o.Secrets.Set(secretID(def), []byte(q.URL))
	}
	if err != nil {
		return nil, err
	}
	err = fs.o.Store.Write(ctx, store.Write{Kind: store.Destinations, ID: def.Name, Data: data, If: ptr(uint64(0))})
	if errors.As(err, new(*store.ConflictError)) {
		err = nameTaken(q.Name)
	}
	if err != nil {
		return nil, errors.Join(err, fs.o.Secrets.Remove(secretID(def)))
	}
	if err := fs.start(ctx, def); err != nil {
		return nil, err
	}
	return fs.feeds[q.Name], nil
}

// room returns an error if a name is taken or there are too many destinations.
func (fs *Feeds) room(name string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.free(name)
}

func (fs *Feeds) free(name string) error {
	switch {
	case fs.feeds[name] != nil:
		return nameTaken(name)
	case len(fs.feeds) == maxDestinations:
		return host.Refuse("conflict", "there are %d destinations already", maxDestinations)
	}
	return nil
}

func nameTaken(name string) error {
	return host.Refuse("conflict", "there is a destination %s already; remove it first, or choose another name", name)
}

func ptr[T any](v T) *T { return &v }

// sentence returns an error for the owner, on one line and at most 500 bytes long.
func sentence(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // errors may be joined
	if what := private.Trouble(err); what != "" {
		text = what + " (" + text + ")"
	}
	return abi.Cut(abi.Clean(text), 500)
}

// refused converts an error of a destination to a refusal.
func refused(err error) error {
	code := "destination_unavailable"
	switch {
	case errors.Is(err, ErrClaimed):
		code = "destination_claimed"
	case errors.Is(err, ErrForeign):
		code = "destination_foreign"
	case errors.Is(err, context.Canceled), errors.As(err, new(*host.Refusal)):
		return err
	}
	return host.Refuse(code, "%s", sentence(err))
}

// PauseAll pauses all destinations of a store that no host has open and returns their number.
func PauseAll(ctx context.Context, s store.Documents) (paused int, err error) {
	docs, err := s.Documents(ctx, store.DocumentQuery{Kind: store.Destinations, Limit: 1000})
	if err != nil {
		return 0, fmt.Errorf("list destinations: %w", err)
	}
	for _, d := range docs {
		var def definition
		if err := json.Unmarshal(d.Data, &def); err != nil {
			return paused, fmt.Errorf("read destination %s: %w", d.ID, err)
		}
		def.Paused = true
		data, err := json.Marshal(def)
		if err != nil {
			return paused, err
		}
		if err := s.Write(ctx, store.Write{Kind: store.Destinations, ID: d.ID, Data: data}); err != nil {
			return paused, fmt.Errorf("pause destination %s: %w", d.ID, err)
		}
		paused++
	}
	return paused, nil
}

// find returns a destination that this host feeds.
func (fs *Feeds) find(ctx context.Context, name string) (*feed, error) {
	f, here, err := fs.look(ctx, name)
	if err == nil && !here {
		err = f.elsewhere()
	}
	return f, err
}

// look returns a destination and whether this host feeds it.
func (fs *Feeds) look(ctx context.Context, name string) (f *feed, here bool, err error) {
	fs.mu.Lock()
	f = fs.feeds[name]
	fs.mu.Unlock()
	if f != nil {
		return f, true, nil
	}
	others, err := fs.foreign(ctx)
	if i := slices.IndexFunc(others, func(f *feed) bool { return f.def.Name == name }); i >= 0 {
		return others[i], false, nil
	}
	return nil, false, cmp.Or(err, fmt.Errorf("destination: %w", store.ErrNotFound))
}

// Feeder returns the other host that feeds a destination, or nil if this one does or none.
func (fs *Feeds) Feeder(ctx context.Context, name string) (*store.Member, error) {
	f, here, err := fs.look(ctx, name)
	if err != nil || here || f.orphan {
		return nil, err
	}
	all, err := fs.o.Members.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	return f.def.of(all), nil
}

// Destinations implements host.Destinations.
func (fs *Feeds) Destinations(ctx context.Context) ([]host.Destination, error) {
	others, err := fs.foreign(ctx)
	if err != nil {
		return nil, err
	}
	fs.mu.Lock()
	feeds := slices.Collect(maps.Values(fs.feeds))
	for _, f := range others {
		if fs.feeds[f.def.Name] == nil { // not started here meanwhile
			feeds = append(feeds, f)
		}
	}
	fs.mu.Unlock()
	slices.SortFunc(feeds, func(a, b *feed) int { return cmp.Compare(a.def.Name, b.def.Name) })
	out := []host.Destination{}
	for _, f := range feeds {
		d, err := f.described(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Destination implements host.Destinations.
func (fs *Feeds) Destination(ctx context.Context, name string) (host.Destination, error) {
	f, _, err := fs.look(ctx, name)
	if err != nil {
		return host.Destination{}, err
	}
	return f.described(ctx)
}

// SyncDestination implements host.Destinations.
func (fs *Feeds) SyncDestination(ctx context.Context, name string) (host.Destination, error) {
	return fs.ask(ctx, name, request{what: syncNow})
}

// PauseDestination implements host.Destinations.
func (fs *Feeds) PauseDestination(ctx context.Context, name string, paused bool) (host.Destination, error) {
	action := "destination.resumed"
	if paused {
		action = "destination.paused"
	}
	return fs.change(ctx, action, name, func(def *definition) error {
		def.Paused = paused
		return nil
	})
}

// change changes the definition of a destination by way of its feed.
func (fs *Feeds) change(ctx context.Context, action, name string,
	do func(*definition) error) (d host.Destination, err error) {
	if _, err := fs.find(ctx, name); err != nil {
		return d, err // nothing is audited for a destination that does not exist
	}
	err = fs.o.Audited(ctx, action, name, func() error {
		d, err = fs.ask(ctx, name, request{what: changed, change: do})
		return err
	})
	return d, err
}

// overlap is how long a replaced secret continues to sign.
const overlap = 24 * time.Hour

// RotateDestination implements host.Destinations.
func (fs *Feeds) RotateDestination(ctx context.Context, name, secret string) (host.Destination, error) {
	return fs.change(ctx, "destination.rotated", name, func(def *definition) error { return fs.rotate(def, secret) })
}

func (fs *Feeds) rotate(def *definition, secret string) error {
	now := fs.o.Now().UTC()
	def.SecretUntil = now.Add(overlap)
	url, err := fs.o.Secrets.Get(secretID(*def))
	if err != nil {
		return fmt.Errorf("read its address from the vault: %w", err)
	}
	defer clear(url)
	kind, err := fs.o.Kinds.Of(string(url))
	if err != nil {
		return err
	}
	signer, ok := kind.(Signer)
	if !ok {
		return host.Refuse("conflict",
			"nothing is signed with a secret at %s; for another password remove it and add it again under its name, which goes on where it is", def.Shown)
	}
	next, err := signer.Rotate(string(url), secret, now, def.SecretUntil)
	if err == nil {
		_, err = kind.Check(next, fs.o.DataDir)
	}
	if err != nil {
		return host.Invalid("secret", "secret", "%v", err)
	}
	return fs.o.Secrets.Set(secretID(*def), []byte(next))
}

// RebuildDestination implements host.Destinations.
func (fs *Feeds) RebuildDestination(ctx context.Context, name string, connection store.ConnectionID,
	stream store.Stream) (d host.Destination, err error) {
	err = fs.o.Audited(ctx, "destination.rebuilt", name, func() error {
		d, err = fs.ask(ctx, name, request{what: rebuild, of: StreamID{connection, stream}})
		return err
	})
	return d, err
}

// RemoveDestination implements host.Destinations.
func (fs *Feeds) RemoveDestination(ctx context.Context, name string) error {
	return fs.o.Audited(ctx, "destination.removed", name, func() error { return fs.remove(ctx, name) })
}

func (fs *Feeds) remove(ctx context.Context, name string) error {
	f, here, err := fs.look(ctx, name)
	switch {
	case err != nil:
		return err
	case !here && !f.orphan:
		return f.elsewhere()
	case !here: // no other host can remove it
		if err := fs.take(ctx, name); err != nil {
			return err
		}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if now := fs.feeds[name]; now == nil || now.definition().ID != f.def.ID {
		return fmt.Errorf("destination: %w", store.ErrNotFound)
	}
	f = fs.feeds[name]
	fs.stop(f)
	if err := fs.o.Store.Write(ctx, store.Write{Kind: store.Destinations, ID: name},
		store.Write{Kind: store.Delivered, ID: name}); err != nil {
		return errors.Join(err, fs.start(context.WithoutCancel(ctx), f.def))
	}
	return errors.Join(marks{fs.o.Store, f.def.ID}.forget(ctx), fs.o.Secrets.Remove(secretID(f.def)))
}

// ask sends a request to a feed and waits for the answer.
func (fs *Feeds) ask(ctx context.Context, name string, q request) (host.Destination, error) {
	f, err := fs.find(ctx, name)
	if err != nil {
		return host.Destination{}, err
	}
	q.done = make(chan error, 1)
	select {
	case f.asked <- q:
	case <-ctx.Done():
		return host.Destination{}, ctx.Err()
	case <-f.gone:
		return host.Destination{}, f.over()
	}
	select {
	case err = <-q.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-f.gone:
		err = f.over()
	}
	if err != nil {
		return host.Destination{}, err
	}
	return f.described(ctx)
}
