package assistant

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/cache"
	"github.com/sluicehost/sluice/host/query"
	"github.com/sluicehost/sluice/host/search"
	"github.com/sluicehost/sluice/store"
)

// Store is the source of the data, and holds grants and calls.
type Store interface {
	store.Documents
	store.Records
	Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error)
	Connections(ctx context.Context) ([]store.Connection, error)
	Runs(ctx context.Context, connection store.ConnectionID, before store.RunID, limit int) ([]store.Run, error)
	Pending(ctx context.Context, id store.RunID) ([]store.Interaction, error)
	Gaps(ctx context.Context, connection store.ConnectionID, grant store.GrantID, status string) ([]store.DetailGap, error)
}

// Starter starts runs.
type Starter interface {
	StartRun(ctx context.Context, q host.StartRun) (store.Run, error)
}

// Hosts are the hosts that share the store.
type Hosts interface {
	// Self returns the epoch of this start of this host.
	Self() string
	// Alive reports whether the host with an epoch is there.
	Alive(ctx context.Context, epoch string) (bool, error)
	// Decide has another host decide a call that waits there.
	Decide(ctx context.Context, epoch string, q Decision) error
}

// A Decision is an owner's answer to a waiting call.
type Decision struct {
	Name string `json:"name"` // of the assistant
	Call string `json:"call"`
	Yes  bool   `json:"yes"`
}

// Options are the dependencies and settings of a Gateway.
type Options struct {
	Store Store
	Runs  Starter
	// Dir is the directory of the copies, with a subdirectory for each assistant; "" uses temporary ones.
	Dir     string
	Most    int64        // maximum bytes of one assistant's copies, and of its indexes; 0 for no limit
	Setting string       // name of the setting for Most
	Room    func() error // returns an error while the disk is nearly full; may be nil
	Version string
	// Audited runs do and records action and the name of the assistant in the audit log; nil only runs do.
	Audited func(ctx context.Context, action, name string, do func() error) error
	Hosts   Hosts // nil for a store that one host has to itself
	// Called writes calls to the audit log; nil does not.
	Called func(calls []Call) error
	// AskFor is how long a call waits for approval; 0 means two minutes.
	AskFor time.Duration
	Log    *slog.Logger     // nil discards messages
	Now    func() time.Time // nil means the clock of Store
}

// A Call is a call to be logged, with its caller.
type Call struct {
	Assistant string
	ID        string // of the assistant; not shared with others by the same name
	Who       host.Principal
	host.AssistantCall
}

// Limits of assistants.
const (
	maxAssistants  = 64
	maxConnections = 100
	maxScope       = 256 << 10 // bytes, of one connection
	secretBytes    = 32
	askFor         = 2 * time.Minute
)

// A Gateway implements host.Assistants and serves their requests. It is safe for concurrent use.
type Gateway struct {
	o                 Options
	log               *callLog
	asks              *asks
	queries, searches *cache.FairSemaphore // shared by all assistants

	saving    sync.Mutex // held while definitions are written
	reading   sync.Mutex // held while they are read, so that what was read later is kept
	mu        sync.Mutex // guards the fields below
	endpoints map[string]*endpoint
}

var _ host.Assistants = (*Gateway)(nil)

// A definition is an assistant as it is stored under its name.
type definition struct {
	ID        string              `json:"id"` // in its token, calls and copies
	Name      string              `json:"name"`
	Digest    []byte              `json:"digest"` // SHA-256 of the secret
	Key       []byte              `json:"key"`    // for its cursors
	Terms     host.AssistantTerms `json:"terms"`
	Made      []time.Time         `json:"made"` // creation times of the connections, in the order of Terms
	CreatedAt time.Time           `json:"created_at"`
	RevokedAt *time.Time          `json:"revoked_at,omitempty"`
	UsedAt    *time.Time          `json:"used_at,omitempty"`
	Calls     uint64              `json:"calls"`
}

// status returns whether an assistant is active, expired or revoked.
func (d *definition) status(now time.Time) string {
	switch {
	case d.RevokedAt != nil:
		return access.Revoked
	case d.Terms.ExpiresAt != nil && !now.Before(*d.Terms.ExpiresAt):
		return access.Expired
	}
	return access.Active
}

// Open loads the assistants of a host. CloseAssistants must be called at the end.
func Open(ctx context.Context, o Options) (*Gateway, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() time.Time { return store.Now(o.Store) }
	}
	if o.Audited == nil {
		o.Audited = func(_ context.Context, _, _ string, do func() error) error { return do() }
	}
	if o.AskFor <= 0 {
		o.AskFor = askFor
	}
	d := &Gateway{o: o, asks: newAsks(), endpoints: map[string]*endpoint{}, queries: cache.NewFairSemaphore(query.AtOnce),
		searches: cache.NewFairSemaphore(search.AtOnce)}
	d.log = newCallLog(d)
	if err := d.sync(ctx); err != nil {
		return nil, err
	}
	return d, d.tidy()
}

// sync reads the assistants, which other hosts that share the store may have made, revoked and heard of since.
func (d *Gateway) sync(ctx context.Context) error {
	d.reading.Lock()
	defer d.reading.Unlock()
	docs, err := d.o.Store.Documents(ctx, store.DocumentQuery{Kind: store.Assistants, Limit: 1000})
	if err != nil {
		return fmt.Errorf("list assistants: %w", err)
	}
	all := make([]definition, len(docs))
	for i, doc := range docs {
		if err := json.Unmarshal(doc.Data, &all[i]); err != nil {
			return fmt.Errorf("read assistant %s: %w", doc.ID, err)
		}
	}
	for _, s := range d.adopt(all) {
		d.asks.drop(s.def.ID)
		s.leave(true)
	}
	return nil
}

// adopt makes endpoints for what was read. It returns those that are over since.
func (d *Gateway) adopt(all []definition) (over []*endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, def := range all {
		s := d.endpoints[def.Name]
		switch {
		case s == nil:
			d.endpoints[def.Name] = newEndpoint(d, def)
		case s.def.ID != def.ID:
			over = append(over, s)
			d.endpoints[def.Name] = newEndpoint(d, def)
		default:
			if s.def.RevokedAt == nil && def.RevokedAt != nil { // one that was revoked here stays so whatever is stored
				s.def.RevokedAt = def.RevokedAt
				over = append(over, s)
			}
			s.def.Calls, s.def.UsedAt = def.Calls, def.UsedAt
		}
	}
	return over
}

// tidy removes the copies of assistants that are no longer active.
func (d *Gateway) tidy() error {
	if d.o.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(d.o.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list copies for assistants: %w", err)
	}
	keep := map[string]bool{}
	for _, s := range d.endpoints {
		if s.def.status(d.o.Now()) == access.Active {
			keep[s.def.ID] = true
		}
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := os.RemoveAll(filepath.Join(d.o.Dir, e.Name())); err != nil {
				return fmt.Errorf("remove copies of an assistant: %w", err)
			}
		}
	}
	return nil
}

// Forget removes a connection that was deleted from the assistants' copies.
func (d *Gateway) Forget(id store.ConnectionID) (err error) {
	for _, s := range d.all() {
		if _, granted := s.view.grants[id]; granted {
			err = errors.Join(err, s.forget(id))
		}
	}
	return err
}

func (d *Gateway) all() []*endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.endpoints))
}

// CloseAssistants ends all calls and returns once they are logged.
func (d *Gateway) CloseAssistants() {
	d.asks.close()
	endpoints := d.all()
	for _, s := range endpoints {
		s.end()
	}
	d.log.close()
	for _, s := range endpoints {
		s.leave(false)
	}
}

// endpoint returns the assistant by that name, or store.ErrNotFound.
func (d *Gateway) endpoint(name string) (*endpoint, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.endpoints[name]
	if s == nil {
		return nil, fmt.Errorf("assistant: %w", store.ErrNotFound)
	}
	return s, nil
}

// current is endpoint, of an assistant that another host may have made.
func (d *Gateway) current(ctx context.Context, name string) (*endpoint, error) {
	if err := d.sync(ctx); err != nil {
		return nil, err
	}
	return d.endpoint(name)
}

const tokenPrefix = "sla_"

// newToken returns a new token and the digest by which it is recognized.
func newToken(id string) (token string, digest []byte) {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	secret := base64.RawURLEncoding.EncodeToString(b)
	return tokenPrefix + id + "_" + secret, digestOf(secret)
}

func digestOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// AuthenticateAssistant returns the name of the token's assistant. It returns access.ErrUnauthenticated,
// access.ErrKeyExpired, access.ErrKeyRevoked or an error of the store.
func (d *Gateway) AuthenticateAssistant(ctx context.Context, token string) (name string, err error) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	id, secret, whole := strings.Cut(rest, "_")
	if !ok || !whole || len(token) > 200 {
		return "", access.ErrUnauthenticated
	}
	if err := d.sync(ctx); err != nil {
		return "", err
	}
	digest := digestOf(secret)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.endpoints {
		if s.def.ID == id && subtle.ConstantTimeCompare(digest, s.def.Digest) == 1 {
			return s.def.Name, s.def.err(d.o.Now())
		}
	}
	return "", access.ErrUnauthenticated
}

// KnownAssistant checks an assistant that the owner named on the local socket. It returns the same errors as
// AuthenticateAssistant.
func (d *Gateway) KnownAssistant(ctx context.Context, name string) error {
	if err := d.sync(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.endpoints[name]
	if s == nil {
		return access.ErrUnauthenticated
	}
	return s.def.err(d.o.Now())
}

func (d *definition) err(now time.Time) error {
	switch d.status(now) {
	case access.Revoked:
		return access.ErrKeyRevoked
	case access.Expired:
		return access.ErrKeyExpired
	}
	return nil
}
