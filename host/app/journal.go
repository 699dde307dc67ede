package app

import (
	"bytes"
	"cmp"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// JournalOptions limit the journals of runs that may wait for their owner.
type JournalOptions struct {
	Bytes   int           // of what a run is answered; 0 means run.DefaultHistoryBytes
	Entries int           // calls and replies of a run; 0 means run.DefaultHistoryEntries
	Awake   time.Duration // how long a run waits before it is suspended; 0 means DefaultAwake, negative means forever
	// FreeMemory is the free memory in bytes, of the machine and its control groups, below which waiting runs
	// are suspended at once; 0 means DefaultFreeMemory, negative means never.
	FreeMemory int
}

// Defaults of JournalOptions.
const (
	DefaultAwake      = 10 * time.Minute
	DefaultFreeMemory = 256 << 20
)

// memoryShort returns the value of controller.Options.MemoryShort.
func (o JournalOptions) memoryShort() func() bool {
	least := cmp.Or(o.FreeMemory, DefaultFreeMemory)
	if least < 0 {
		return nil
	}
	return func() bool {
		free, known := jail.FreeMemory()
		return known && free < uint64(least)
	}
}

// journalSecret is the name of the secret from which the keys of journals are derived.
const journalSecret = "journal_key"

// The size of a key in bytes, and the number of keys that are kept: the journal of a waiting run may have been
// sealed with a key that was replaced since.
const (
	journalKey  = 32
	journalKeys = 16
)

// journalSecrets returns the keys from which the keys of journals are derived, newest first. It makes the first
// one. They are stored in the vault.
func (d *directory) journalSecrets() (all [][]byte, err error) {
	v, err := d.vault()
	if err != nil {
		return nil, err
	}
	kept, err := v.Get(vault.Host, journalSecret)
	if errors.Is(err, vault.ErrNotFound) {
		if err = v.Add(vault.Host, journalSecret, newJournalKey()); err == nil || errors.Is(err, vault.ErrExists) {
			kept, err = v.Get(vault.Host, journalSecret)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("key of journals: %w", err)
	}
	defer kept.Wipe()
	kept.Use(func(b []byte) {
		for one := range slices.Chunk(bytes.Clone(b), journalKey) {
			all = append(all, one)
		}
	})
	return all, nil
}

func newJournalKey() []byte {
	k := make([]byte, journalKey)
	rand.Read(k)
	return k
}

// renewJournalSecret makes a new key for the journals of runs that begin from now on.
func (d *directory) renewJournalSecret() error {
	v, err := d.vault()
	if err != nil {
		return err
	}
	all, err := d.journalSecrets()
	if err != nil {
		return err
	}
	all = append([][]byte{newJournalKey()}, all...)
	return v.Set(vault.Host, journalSecret, bytes.Join(all[:min(len(all), journalKeys)], nil))
}

// runKey derives the key of one run for one purpose.
func runKey(secret []byte, id store.RunID, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, "sluice "+purpose+" "+string(id), 32)
}

// A resumable is the part of a RunRequest that is stored with the journal of its run.
type resumable struct {
	Start          uint64                 `json:"start"` // of the guest's clock, in Unix milliseconds
	Mode           string                 `json:"mode,omitempty"`
	Scope          json.RawMessage        `json:"scope,omitempty"`
	Narrow         bool                   `json:"narrow,omitempty"`
	State          json.RawMessage        `json:"state,omitempty"`
	ResetState     bool                   `json:"reset_state,omitempty"`
	NoPersist      bool                   `json:"no_persist,omitempty"`
	Lower          map[string]int64       `json:"lower,omitempty"`
	StateFrom      map[string]store.RunID `json:"state_from,omitempty"`
	AutomationMode string                 `json:"automation_mode,omitempty"`
}

func resumableOf(q RunRequest) resumable {
	return resumable{q.fixed.Start, q.Mode, q.Scope, q.Narrow, q.State, q.ResetState, q.NoPersist, q.Lower,
		q.StateFrom, q.AutomationMode}
}

// request restores the RunRequest, with what the row of the run holds.
func (r resumable) request(s *run.Suspended) RunRequest {
	return RunRequest{
		Connection: s.Run.ConnectionID, Existing: true, Mode: r.Mode, Scope: r.Scope, Narrow: r.Narrow, State: r.State,
		ResetState: r.ResetState, NoPersist: r.NoPersist, Lower: r.Lower, StateFrom: r.StateFrom,
		AutomationMode: r.AutomationMode, Trigger: s.Run.TriggerKind, Attempt: s.Run.Attempt, RetryOf: s.Run.RetryOf,
		Request: s.Run.Request, fixed: &abi.Fixed{Start: r.Start, Told: true}, resume: s,
	}
}

// journal returns the history that lets a run outlive its host, and fixes the clock, random numbers and handles
// of the guest so that a resumed run gets the same ones. If the run cannot outlive its host, Bound of the
// history says why.
func (st *starter) journal(q *RunRequest, id store.RunID) *run.History {
	h := &run.History{MaxBytes: st.Options.Journal.Bytes, MaxEntries: st.Options.Journal.Entries, Resume: q.resume}
	switch h.Awake = st.Options.Journal.Awake; {
	case h.Awake == 0:
		h.Awake = DefaultAwake
	case h.Awake < 0:
		h.Awake = 0
	}
	if h.Bound = st.hostBound(q); h.Bound != "" {
		return h
	}
	secret, err := q.sealed, error(nil)
	if secret == nil {
		var all [][]byte
		if all, err = st.journalSecrets(); err == nil {
			secret = all[0]
		}
	}
	var key, seed []byte
	if err == nil {
		key, err = runKey(secret, id, "journal")
	}
	if err == nil {
		seed, err = runKey(secret, id, "guest")
	}
	switch {
	case errors.Is(err, vault.ErrNotAdmitted):
		h.Bound = "its host is not admitted to the vault, which has the key of journals"
		return h
	case err != nil:
		st.Options.Log.Error("journal_without_key", "run", id, "error", err)
		h.Bound = "the vault, which has the key of journals, cannot be opened"
		return h
	}
	if q.fixed == nil {
		q.fixed = &abi.Fixed{Start: uint64(time.Now().UnixMilli()), Told: true} // #nosec G115 -- after 1970
	}
	if h.Key, h.Resumable = key, goesOn(q.Connector.Manifest); q.Replay == nil { // a replay has its own seed
		q.fixed.Seed = [32]byte(seed)
	}
	if h.Request, err = json.Marshal(resumableOf(*q)); err != nil {
		h.Bound = "what it was started with cannot be kept"
	}
	return h
}

// goesOn reports whether runs of a connector are resumed even if they did not wait for their owner.
func goesOn(m *abi.Manifest) bool { return m.Sluice != nil && m.Sluice.Resumable }

// hostBound returns why a run does not outlive its host, "" if it may.
func (st *starter) hostBound(q *RunRequest) string {
	m := q.Connector.Manifest
	_, browser := m.Bindings[abi.BindingBrowser]
	_, files := m.Bindings[abi.BindingFilesystem]
	switch {
	case q.rehearsed: // a rehearsal meets all of these
	case st.DataDir == "":
		return "its store is in memory"
	case q.Record != nil || q.Replay != nil:
		return "it is recorded or replayed"
	case !q.serviced:
		return "it was given what only this run has, or by a command that ends with it"
	}
	switch {
	case browser:
		return "it may hold a browser"
	case files:
		return "it was lent a directory"
	case len(m.HumanKinds) == 0 && !goesOn(m):
		return "its manifest does not say that it asks"
	}
	return ""
}
