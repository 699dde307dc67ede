package vault

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"filippo.io/age"

	"github.com/sluicehost/sluice/store"
)

// Documents is the part of a store that a Shared vault needs.
type Documents interface {
	Write(ctx context.Context, writes ...store.Write) error
	Document(ctx context.Context, kind store.Kind, id string) (store.Document, error)
}

// Errors of a Shared vault that callers distinguish.
var (
	ErrNotAdmitted = errors.New(
		"this host is not admitted to the vault of its database, so it runs nothing that needs a secret")
	ErrRolledBack = errors.New("the database holds an older vault than this host has seen")
	ErrCode       = errors.New("the host is not admitted")
)

// A Shared vault keeps the secrets of hosts that share a store, in that store. Each secret is an
// age file for the key of the vault, and that key is sealed to the key of every host that an owner
// admitted. A host's own Vault contains its key and what it last saw.
//
// It does not trust the store. Whoever can write the database can remove secrets, but can neither
// read nor replace one, nor make a host accept keys that do not belong to its vault.
type Shared struct {
	own  *Vault
	docs Documents
	host string

	mu  sync.Mutex // guards the fields below; held while own is accessed
	id  *age.X25519Identity
	saw *seen
}

// seen is what a host remembers of the vault.
type seen struct {
	Generation uint64 `json:"generation"` // 0: nothing
	Revision   uint64 `json:"revision"`
	Digest     []byte `json:"digest"`
	Keys       keys   `json:"keys"`
}

// Names of a host's own secrets.
const (
	hostKey   = "host_key"
	hostVault = "shared_vault"
)

// IDs of documents of kind store.Vault.
const (
	registerID    = "register"
	requestPrefix = "request/"
)

// patience bounds requests to the store if the caller has no context.
const patience = 20 * time.Second

// NewShared returns the shared vault in a store for a host with its own vault. It does not access
// either.
func NewShared(own *Vault, docs Documents, host string) *Shared {
	return &Shared{own: own, docs: docs, host: host}
}

// A reading is a register that was found to be genuine.
type reading struct {
	*register
	keys     keys
	revision uint64 // of the document
}

// errEmpty means that no host has created the vault yet.
var errEmpty = errors.New("there is no vault in the database yet")

// read returns the register if this host is admitted.
func (s *Shared) read(ctx context.Context) (*reading, error) {
	d, err := s.docs.Document(ctx, store.Vault, registerID)
	absent := errors.Is(err, store.ErrNotFound)
	if err != nil && !absent {
		return nil, fmt.Errorf("read vault: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, saw, err := s.ours()
	switch {
	case err != nil:
		return nil, err
	case absent && saw.Generation > 0:
		return nil, s.rolledBack(saw, 0)
	case absent:
		return nil, errEmpty
	}
	r, text, err := parseRegister(d.Data)
	if err != nil {
		return nil, err
	}
	if r.Generation < saw.Generation || r.Revision < saw.Revision {
		return nil, s.rolledBack(saw, r.Revision)
	}
	k, err := s.keysFor(r, id, saw)
	if err != nil {
		return nil, err
	}
	if err := text.genuine(r.Generation, k); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text.Register)
	if r.Revision == saw.Revision && !bytes.Equal(sum[:], saw.Digest) {
		return nil, s.rolledBack(saw, r.Revision)
	}
	if r.Secrets == nil {
		r.Secrets = map[string]listed{}
	}
	return &reading{r, k, d.Revision}, s.see(&seen{r.Generation, r.Revision, sum[:], k})
}

func (s *Shared) rolledBack(saw *seen, at uint64) error {
	return fmt.Errorf(
		"%w (change %d, and it has seen %d); if you restored the database, give sluice hosts accept at this host, which goes on with what is there; "+
			"otherwise somebody changed it: stop the hosts, and bring back a copy of the database",
		ErrRolledBack, at, saw.Revision)
}

// keysFor returns the keys of a register for this host. They are those that it had, or come from
// somebody who had them or who has this host's code.
func (s *Shared) keysFor(r *register, id *age.X25519Identity, saw *seen) (keys, error) {
	a := r.of(id.Recipient().String())
	switch {
	case a == nil:
		return nil, s.notAdmitted()
	case r.Generation == saw.Generation:
		return saw.Keys, nil
	}
	b, err := a.open(id)
	if err != nil {
		return nil, err
	}
	had := saw.Keys[saw.Generation]
	if saw.Generation > 0 && hmac.Equal([]byte(b.Keys[saw.Generation]), []byte(had)) ||
		hmac.Equal([]byte(b.Code), []byte(codeOf(id))) {
		return b.Keys, nil
	}
	return nil, s.notAdmitted()
}

func (s *Shared) notAdmitted() error {
	return fmt.Errorf("%w: give sluice hosts code here, and with what it says sluice hosts admit %s at a host that is",
		ErrNotAdmitted, s.host)
}

// ours returns the key of this host, and what it has seen. The caller holds mu.
func (s *Shared) ours() (*age.X25519Identity, *seen, error) {
	if s.id == nil {
		id, err := s.ownKey()
		if err != nil {
			return nil, nil, fmt.Errorf("key of this host: %w", err)
		}
		s.id = id
	}
	if s.saw == nil {
		saw := &seen{}
		v, err := s.own.Get(Host, hostVault)
		if err == nil {
			v.Use(func(b []byte) { err = json.Unmarshal(b, saw) })
			v.Wipe()
		} else if errors.Is(err, ErrNotFound) {
			err = nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("keys of the vault: %w", err)
		}
		s.saw = saw
	}
	return s.id, s.saw, nil
}

// ownKey returns the key of this host, creating it at first use.
func (s *Shared) ownKey() (*age.X25519Identity, error) {
	fresh, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	if err := s.own.Add(Host, hostKey, []byte(fresh.String())); err == nil {
		return fresh, nil
	} else if !errors.Is(err, ErrExists) {
		return nil, err
	}
	v, err := s.own.Get(Host, hostKey)
	if err != nil {
		return nil, err
	}
	defer v.Wipe()
	text := ""
	v.Use(func(b []byte) { text = string(b) })
	id, err := age.ParseX25519Identity(text)
	if err != nil {
		return nil, ErrDamaged // the error's text may quote it
	}
	return id, nil
}

// see durably stores newer state than was seen before. The caller holds mu.
func (s *Shared) see(now *seen) error {
	if s.saw.Generation == now.Generation && s.saw.Revision >= now.Revision {
		return nil
	}
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	defer clear(b)
	if err := s.own.Set(Host, hostVault, b); err != nil {
		return fmt.Errorf("remember the vault: %w", err)
	}
	s.saw = now
	return nil
}

// write stores the next revision of a register together with other documents. It returns
// *store.ConflictError if another change was faster.
func (s *Shared) write(ctx context.Context, r *reading, with ...store.Write) error {
	r.Revision++
	text, err := json.Marshal(r.register)
	if err != nil {
		return err
	}
	out := signed{Register: text}
	if out.MAC, err = r.keys.mac(r.Generation, text); err != nil {
		return err
	}
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	if len(data) > maxRegister {
		return fmt.Errorf("%w: the list of all secrets has more than %d bytes; remove some", ErrInvalid, maxRegister)
	}
	if err := s.docs.Write(ctx,
		append(with, store.Write{Kind: store.Vault, ID: registerID, Data: data, If: &r.revision})...); err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.see(&seen{r.Generation, r.Revision, sum[:], r.keys})
}

// change writes the register as edited by edit, with the documents that edit returns. If there is
// no vault yet, it is created.
func (s *Shared) change(ctx context.Context, edit func(*reading) ([]store.Write, error)) error {
	for try := 1; ; try++ {
		r, err := s.read(ctx)
		if errors.Is(err, errEmpty) {
			r, err = s.found()
		}
		if err != nil {
			return err
		}
		with, err := edit(r)
		if err != nil {
			return err
		}
		err = s.write(ctx, r, with...)
		if conflict := (*store.ConflictError)(nil); !errors.As(err, &conflict) || try == 100 {
			return err
		}
		select {
		case <-time.After(rand.N(time.Duration(min(try, 20)) * 2 * time.Millisecond)): // #nosec G404 -- so that two do not meet again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// found returns the register of a new vault.
func (s *Shared) found() (*reading, error) {
	r := &reading{register: &register{Generation: 1, Secrets: map[string]listed{}}, keys: keys{}}
	if err := r.keys.add(1); err != nil {
		return nil, err
	}
	return r, s.admitSelf(r)
}

func (s *Shared) admitSelf(r *reading) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, err := s.ours()
	if err != nil {
		return err
	}
	return r.put(admitted{Host: s.host, Key: id.Recipient().String(), At: time.Now().UTC()}, box{codeOf(id), r.keys})
}

func (s *Shared) asked() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func idOf(connection, name string) string { return connection + "/" + name }

func entryOf(id string) (Entry, bool) {
	connection, name, ok := strings.Cut(id, "/")
	return Entry{Connection: connection, Name: name}, ok && CheckNames(connection, name) == nil
}

// Set implements Keeper. It returns once the value is durable in the store.
func (s *Shared) Set(connection, name string, value []byte) error {
	return s.set(connection, name, value, true)
}

// Add implements Keeper.
func (s *Shared) Add(connection, name string, value []byte) error {
	return s.set(connection, name, value, false)
}

func (s *Shared) set(connection, name string, value []byte, over bool) error {
	if err := check(connection, name, value); err != nil {
		return err
	}
	ctx, cancel := s.asked()
	defer cancel()
	return s.change(ctx, func(r *reading) ([]store.Write, error) {
		if _, ok := r.Secrets[idOf(connection, name)]; ok && !over {
			return nil, exists(connection, name)
		}
		if err := fits(r.connection(connection), connection, name); err != nil {
			return nil, err
		}
		w, err := r.seal(Entry{connection, name, time.Now().UTC()}, value)
		return []store.Write{w}, err
	})
}

// seal seals a value with the newest key and lists it in the register.
func (r *reading) seal(e Entry, value []byte) (store.Write, error) {
	ids, err := r.keys.identities()
	if err != nil {
		return store.Write{}, err
	}
	file, err := seal(ids[0].Recipient(), e.Connection, e.Name, value)
	if err != nil {
		return store.Write{}, err
	}
	data, err := json.Marshal(file)
	if err != nil {
		return store.Write{}, err
	}
	sum := sha256.Sum256(data)
	r.Secrets[idOf(e.Connection, e.Name)] = listed{sum[:], e.Set, r.Generation}
	return store.Write{Kind: store.Secrets, ID: idOf(e.Connection, e.Name), Data: data}, nil
}

// Get implements Keeper. The error wraps ErrNotFound, ErrNotAdmitted, ErrRolledBack or ErrDamaged.
func (s *Shared) Get(connection, name string) (Secret, error) {
	if err := CheckNames(connection, name); err != nil {
		return Secret{}, err
	}
	ctx, cancel := s.asked()
	defer cancel()
	r, err := s.read(ctx)
	for {
		if errors.Is(err, errEmpty) {
			return Secret{}, missing(connection, name)
		}
		if err != nil {
			return Secret{}, err
		}
		value, why := s.get(ctx, r, connection, name)
		if !errors.Is(why, errChanged) {
			return newSecret(value), why
		}
		was := r.Revision
		if r, err = s.read(ctx); err == nil && r.Revision == was { // otherwise it was set in between
			return Secret{}, damaged(connection, name, errors.New("the database holds another text than was set"))
		}
	}
}

// errChanged means that a document is not the one that the register lists.
var errChanged = errors.New("changed")

func (s *Shared) get(ctx context.Context, r *reading, connection, name string) ([]byte, error) {
	is, ok := r.Secrets[idOf(connection, name)]
	if !ok {
		return nil, missing(connection, name)
	}
	d, err := s.docs.Document(ctx, store.Secrets, idOf(connection, name))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read secret %s of %s: %w", name, connection, err)
	}
	sum := sha256.Sum256(d.Data)
	if err != nil || !bytes.Equal(sum[:], is.Digest) {
		return nil, errChanged
	}
	var file []byte
	if err := json.Unmarshal(d.Data, &file); err != nil || len(file) > maxFile {
		return nil, damaged(connection, name, errors.New("its document is none"))
	}
	ids, err := r.keys.identities()
	if err != nil {
		return nil, err
	}
	return unseal(ids, connection, name, file)
}

// List implements Keeper.
func (s *Shared) List() ([]Entry, error) {
	ctx, cancel := s.asked()
	defer cancel()
	r, err := s.read(ctx)
	if errors.Is(err, errEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.list(), nil
}

// Remove implements Keeper. Remains of the secret in the database stay readable to whoever has the
// key of the vault, until Rotate.
func (s *Shared) Remove(connection, name string) error {
	if err := CheckNames(connection, name); err != nil {
		return err
	}
	ctx, cancel := s.asked()
	defer cancel()
	return s.change(ctx, func(r *reading) ([]store.Write, error) {
		id := idOf(connection, name)
		if _, ok := r.Secrets[id]; !ok {
			return nil, missing(connection, name)
		}
		delete(r.Secrets, id)
		return []store.Write{{Kind: store.Secrets, ID: id}}, nil
	})
}

// resealed is how many secrets are sealed anew in one transaction.
const resealed = 50

// reseal seals secrets with the newest key that are sealed with an older one. Those that cannot be
// opened stay unchanged and are reported.
func (s *Shared) reseal(ctx context.Context) error {
	failed := map[string]error{}
	for more := true; more; {
		err := s.change(ctx, func(r *reading) (with []store.Write, err error) {
			for _, e := range r.list() {
				id := idOf(e.Connection, e.Name)
				if r.Secrets[id].Generation == r.Generation || failed[id] != nil || len(with) == resealed {
					continue
				}
				value, err := s.get(ctx, r, e.Connection, e.Name)
				if err == nil {
					var w store.Write
					w, err = r.seal(e, value)
					clear(value)
					with = append(with, w)
				}
				if err != nil {
					failed[id] = fmt.Errorf("secret %s of %s is not encrypted anew: set it again, or remove it: %w",
						e.Name, e.Connection, err)
				}
			}
			more = len(with) > 0
			if !more {
				return nil, errSettled
			}
			return with, nil
		})
		if err != nil && !errors.Is(err, errSettled) {
			return err
		}
	}
	var all []error
	for _, err := range failed {
		all = append(all, err)
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

// errSettled means that there is nothing to change.
var errSettled = errors.New("nothing to change")
