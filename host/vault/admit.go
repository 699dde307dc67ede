package vault

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A request is how a host that is not admitted announces its key. The database may return another
// key than was written, so the code that the owner carries over proves it.
type request struct {
	Key   string `json:"key"`
	Proof []byte `json:"proof"`
}

// codeOf returns the admission code of a host's key: 120 bits known only to the host and to whoever
// reads them there.
func codeOf(id *age.X25519Identity) string {
	b, err := hkdf.Key(sha256.New, []byte(id.String()), nil, "sluice admission code v1", 15)
	if err != nil {
		panic(err) // the length is valid
	}
	return base32.StdEncoding.EncodeToString(b)
}

// plainCode normalises a typed code.
func plainCode(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '2' && r <= '7' {
			return r
		}
		return -1
	}, strings.ToUpper(s))
}

func proof(code, host, key string) []byte {
	m := hmac.New(sha256.New, []byte(code))
	_, _ = m.Write([]byte("sluice admission v1\x00" + host + "\x00" + key))
	return m.Sum(nil)
}

// Join creates the vault if there is none, with this host as the first admitted one. Otherwise it
// requests admission: the error wraps ErrNotAdmitted until the host is admitted.
func (s *Shared) Join(ctx context.Context) error {
	_, err := s.read(ctx)
	if errors.Is(err, errEmpty) {
		var r *reading
		if r, err = s.found(); err != nil {
			return err
		}
		err = s.write(ctx, r)
		if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) { // another host was faster
			_, err = s.read(ctx)
		}
	}
	if !errors.Is(err, ErrNotAdmitted) {
		return err
	}
	return errors.Join(err, s.request(ctx))
}

// request announces this host's key to whoever admits hosts.
func (s *Shared) request(ctx context.Context) error {
	s.mu.Lock()
	id, _, err := s.ours()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	key := id.Recipient().String()
	data, err := json.Marshal(request{key, proof(codeOf(id), s.host, key)})
	if err != nil {
		return err
	}
	d, err := s.docs.Document(ctx, store.Vault, requestPrefix+s.host)
	if err == nil && string(d.Data) == string(data) {
		return nil
	}
	return s.docs.Write(ctx, store.Write{Kind: store.Vault, ID: requestPrefix + s.host, Data: data})
}

// Code returns the code that an owner carries from this host to an admitted one, in groups of four.
func (s *Shared) Code() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, err := s.ours()
	if err != nil {
		return "", err
	}
	var groups []string
	for g := range slices.Chunk([]byte(codeOf(id)), 4) {
		groups = append(groups, string(g))
	}
	return strings.Join(groups, "-"), nil
}

// Admitted returns the hosts that can open the vault, by id, with the time of their admission. If
// this host is not admitted, the error wraps ErrNotAdmitted.
func (s *Shared) Admitted(ctx context.Context) (map[string]time.Time, error) {
	r, err := s.read(ctx)
	if err != nil && !errors.Is(err, errEmpty) {
		return nil, err
	}
	out := map[string]time.Time{}
	if r != nil {
		for _, h := range r.Hosts {
			out[h.Host] = h.At
		}
	}
	return out, nil
}

// Admit gives a host the keys of the vault if code is the one that it shows. The error wraps
// ErrCode if the code does not belong to the host's key in the database.
func (s *Shared) Admit(ctx context.Context, host, code string) error {
	code = plainCode(code)
	return s.change(ctx, func(r *reading) ([]store.Write, error) {
		var q request
		d, err := s.docs.Document(ctx, store.Vault, requestPrefix+host)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf(
				"%w: host %s has not asked for it; start it with this database, and give sluice hosts admit again", ErrCode,
				abi.Cut(abi.Clean(host), 80))
		case err != nil:
			return nil, err
		}
		if json.Unmarshal(d.Data, &q) != nil || !hmac.Equal(q.Proof, proof(code, host, q.Key)) {
			return nil, fmt.Errorf(
				"%w: this is not the code of the key that the database has of host %s; compare it with what sluice hosts code says there, "+
					"and if it is the same somebody changed the key in the database", ErrCode, abi.Cut(abi.Clean(host), 80))
		}
		if err := r.put(admitted{Host: host, Key: q.Key, At: time.Now().UTC()}, box{code, r.keys}); err != nil {
			return nil, err
		}
		return []store.Write{{Kind: store.Vault, ID: requestPrefix + host, If: &d.Revision}}, nil
	})
}

// Sign returns a MAC of a message that only admitted hosts can make, and check with Signed.
func (s *Shared) Sign(ctx context.Context, purpose string, message []byte) ([]byte, error) {
	r, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, []byte(r.keys[r.Generation]), nil, "sluice message v1 "+purpose, 32)
	if err != nil {
		return nil, err
	}
	m := hmac.New(sha256.New, key)
	_, _ = m.Write(message)
	return m.Sum(nil), nil
}

// Signed reports whether code was made by a host that is admitted now.
func (s *Shared) Signed(ctx context.Context, purpose string, message, code []byte) (bool, error) {
	right, err := s.Sign(ctx, purpose, message)
	return err == nil && hmac.Equal(right, code), err
}

// Expel removes a host and encrypts everything anew for the others. The removed host may have kept
// what it has seen. It returns store.ErrNotFound for a host that is not admitted.
func (s *Shared) Expel(ctx context.Context, host string) error {
	if host == s.host {
		return fmt.Errorf("%w: a host does not remove itself; remove it at another one", ErrInvalid)
	}
	return s.rotate(ctx, func(r *reading) error {
		n := len(r.Hosts)
		if r.Hosts = slices.DeleteFunc(r.Hosts, func(a admitted) bool { return a.Host == host }); len(r.Hosts) == n {
			return fmt.Errorf("host %s: %w", abi.Cut(abi.Clean(host), 80), store.ErrNotFound)
		}
		return nil
	})
}

// Rotate encrypts every secret under a new key for the same hosts. An interrupted rotation is
// completed by the next.
func (s *Shared) Rotate(ctx context.Context) error {
	return s.rotate(ctx, func(*reading) error { return nil })
}

func (s *Shared) rotate(ctx context.Context, edit func(*reading) error) error {
	err := s.change(ctx, func(r *reading) ([]store.Write, error) {
		if err := edit(r); err != nil {
			return nil, err
		}
		return nil, s.rekey(r)
	})
	if err != nil {
		return err
	}
	return s.reseal(ctx)
}

// rekey makes a new key and gives it to all hosts of the register.
func (s *Shared) rekey(r *reading) error {
	r.Generation++
	k := keys{}
	for g, id := range r.keys {
		k[g] = id
	}
	if err := k.add(r.Generation); err != nil {
		return err
	}
	r.keys = k
	for _, a := range slices.Clone(r.Hosts) {
		if err := r.put(a, box{Keys: k}); err != nil {
			return err
		}
	}
	return s.admitSelf(r)
}

// Accept continues with the database's content although this host has seen a newer one, because the
// owner restored it. If a host was removed since then, only this one is admitted.
func (s *Shared) Accept(ctx context.Context) error {
	d, err := s.docs.Document(ctx, store.Vault, registerID)
	absent := errors.Is(err, store.ErrNotFound)
	if err != nil && !absent {
		return err
	}
	s.mu.Lock()
	_, saw, err := s.ours()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if saw.Generation == 0 {
		return s.notAdmitted()
	}
	r := &reading{&register{}, saw.Keys, d.Revision}
	if !absent {
		var text signed
		if r.register, text, err = parseRegister(d.Data); err != nil {
			return err
		}
		if err := text.genuine(r.Generation, saw.Keys); err != nil {
			return err
		}
	}
	if r.Secrets == nil {
		r.Secrets = map[string]listed{}
	}
	r.Revision = max(r.Revision, saw.Revision) + acceptedAhead
	if r.Generation != saw.Generation {
		r.Generation, r.Hosts = saw.Generation, nil
		if err := s.rekey(r); err != nil {
			return err
		}
	}
	if err := s.write(ctx, r); err != nil {
		return err
	}
	return s.reseal(ctx)
}

// acceptedAhead is how many changes other hosts may have seen that this one has not.
const acceptedAhead = 1 << 20

// TakeIn moves the secrets of this host's own vault into the shared one. It returns those that have
// a different value there, which stay where they are.
func (s *Shared) TakeIn() (left []Entry, err error) {
	err = each(s.own, func(e Entry, value []byte) error {
		if e.Connection == Host && (e.Name == hostKey || e.Name == hostVault) {
			return nil
		}
		err := s.Add(e.Connection, e.Name, value)
		if errors.Is(err, ErrExists) {
			var have Secret
			if have, err = s.Get(e.Connection, e.Name); err != nil {
				return err
			}
			defer have.Wipe()
			same := false
			have.Use(func(b []byte) { same = hmac.Equal(b, value) })
			if !same {
				left = append(left, e)
				return nil
			}
		}
		if err != nil {
			return err
		}
		return s.own.Remove(e.Connection, e.Name)
	})
	return left, err
}

// GiveBack moves all secrets into this host's own vault, since the host has its store to itself
// from now on. Without a shared vault it does nothing.
func (s *Shared) GiveBack(ctx context.Context) error {
	if _, err := s.docs.Document(ctx, store.Vault, registerID); errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err := each(s, func(e Entry, value []byte) error { return s.own.Set(e.Connection, e.Name, value) }); err != nil {
		return err
	}
	all, err := s.List()
	if err != nil {
		return err
	}
	gone := []store.Write{{Kind: store.Vault, ID: registerID}}
	for _, e := range all {
		gone = append(gone, store.Write{Kind: store.Secrets, ID: idOf(e.Connection, e.Name)})
	}
	if err := s.docs.Write(ctx, gone...); err != nil {
		return err
	}
	return errors.Join(s.own.Remove(Host, hostVault), s.own.Remove(Host, hostKey))
}

// each calls do with every secret of a vault, opened one at a time.
func each(k Keeper, do func(Entry, []byte) error) error {
	all, err := k.List()
	if err != nil {
		return err
	}
	for _, e := range all {
		v, err := k.Get(e.Connection, e.Name)
		if err != nil {
			return err
		}
		v.Use(func(b []byte) { err = do(e, b) })
		v.Wipe()
		if err != nil {
			return err
		}
	}
	return nil
}
