package vault

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/sluicehost/sluice/abi"
)

// The bounds of a shared vault.
const (
	maxRegister    = 16 * abi.MiB
	maxHosts       = 1000
	maxGenerations = 64 // of keys that are kept
	maxBox         = 64 * abi.KiB
)

// A register says what a shared vault contains and for whom. Whoever admits or removes a host or
// sets a secret writes it with the next revision and a MAC by the vault's key. So nobody who can
// only write the database can change it, and no host accepts one that is older than what it has
// seen.
type register struct {
	Generation uint64            `json:"generation"` // of the vault's key, from 1
	Revision   uint64            `json:"revision"`
	Hosts      []admitted        `json:"hosts"`
	Secrets    map[string]listed `json:"secrets"` // by connection and name
}

// An admitted host has the vault's keys.
type admitted struct {
	Host string    `json:"host"`
	Key  string    `json:"key"` // an age recipient
	At   time.Time `json:"at"`
	Box  []byte    `json:"box"` // sealed to that key
}

// A listed secret is set.
type listed struct {
	Digest     []byte    `json:"digest"` // SHA-256 of its document
	Set        time.Time `json:"set"`
	Generation uint64    `json:"generation"` // of the key that sealed it
}

// keys are age identities by generation. Secrets are sealed with the newest. Earlier ones open what
// is not sealed anew yet, and prove that a newer one comes from somebody who had them.
type keys map[uint64]string

// A box is what an admitted host receives.
type box struct {
	// Code is the host's own code, which only its owner and the host know.
	Code string `json:"code,omitempty"`
	Keys keys   `json:"keys"`
}

// A signed register is its stored form.
type signed struct {
	Register []byte `json:"register"`
	MAC      []byte `json:"mac"`
}

func (k keys) mac(generation uint64, text []byte) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, []byte(k[generation]), nil, "sluice vault register v1", 32)
	if err != nil {
		return nil, err
	}
	m := hmac.New(sha256.New, key)
	_, _ = m.Write(text)
	return m.Sum(nil), nil
}

// identities returns the identities that may open a secret, the one that seals first.
func (k keys) identities() (ids []*age.X25519Identity, err error) {
	for _, g := range slices.Backward(slices.Sorted(maps.Keys(k))) {
		id, err := age.ParseX25519Identity(k[g])
		if err != nil {
			return nil, errForeign
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, errForeign
	}
	return ids, nil
}

// add creates the key of a generation.
func (k keys) add(generation uint64) error {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("make key of the vault: %w", err)
	}
	k[generation] = id.String()
	for _, g := range slices.Sorted(maps.Keys(k))[:max(0, len(k)-maxGenerations)] {
		delete(k, g)
	}
	return nil
}

// errForeign means that a register was not written by an admitted host.
var errForeign = fmt.Errorf(
	"%w: what the database holds as the list of secrets was written by none of the admitted hosts; bring back a copy of the database", ErrDamaged)

func parseRegister(data []byte) (*register, signed, error) {
	var s signed
	var r register
	if len(data) > maxRegister || json.Unmarshal(data, &s) != nil || json.Unmarshal(s.Register, &r) != nil ||
		r.Generation == 0 || len(r.Hosts) > maxHosts {
		return nil, s, errForeign
	}
	return &r, s, nil
}

// genuine checks that a register was written by a host that had the keys.
func (s signed) genuine(generation uint64, k keys) error {
	mac, err := k.mac(generation, s.Register)
	if err != nil || k[generation] == "" || !hmac.Equal(mac, s.MAC) {
		return errForeign
	}
	return nil
}

// of returns the host with a key, or nil.
func (r *register) of(key string) *admitted {
	for i := range r.Hosts {
		if r.Hosts[i].Key == key {
			return &r.Hosts[i]
		}
	}
	return nil
}

// connection returns the secrets of a connection.
func (r *register) connection(id string) (all []Entry) {
	for _, e := range r.list() {
		if e.Connection == id {
			all = append(all, e)
		}
	}
	return all
}

// list returns all secrets, by connection and name.
func (r *register) list() (all []Entry) {
	for _, id := range slices.Sorted(maps.Keys(r.Secrets)) {
		if e, ok := entryOf(id); ok {
			e.Set = r.Secrets[id].Set
			all = append(all, e)
		}
	}
	return all
}

// put gives a host the keys, replacing what it had.
func (r *register) put(a admitted, b box) error {
	to, err := age.ParseX25519Recipient(a.Key)
	if err != nil {
		return fmt.Errorf("%w: what the database holds as the key of host %s is none", ErrCode, a.Host)
	}
	plain, err := json.Marshal(b)
	if err == nil {
		a.Box, err = encrypt(to, plain)
	}
	if err != nil {
		return fmt.Errorf("seal keys of the vault: %w", err)
	}
	r.Hosts = slices.DeleteFunc(r.Hosts, func(h admitted) bool { return h.Host == a.Host || h.Key == a.Key })
	if r.Hosts = append(r.Hosts, a); len(r.Hosts) > maxHosts {
		return fmt.Errorf("%w: %d hosts are admitted; remove those that are gone", ErrInvalid, maxHosts)
	}
	return nil
}

// open opens the box of a host.
func (a *admitted) open(id *age.X25519Identity) (b box, err error) {
	r, err := age.Decrypt(bytes.NewReader(a.Box), id)
	if err != nil {
		return b, errForeign
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxBox))
	defer clear(plain)
	if err = errors.Join(err, json.Unmarshal(plain, &b)); err != nil {
		return b, errForeign
	}
	return b, nil
}
