package host

import (
	"context"
	"time"
)

// Hosts are the hosts that share a store. One that has its store to itself is the only one.
type Hosts interface {
	// Hosts lists them by id.
	Hosts(ctx context.Context) ([]Member, error)
	// LostHosts lists by id those that were not heard of for the time of their lease and that have not
	// been there since: others have ended their runs, and Runs says how many.
	LostHosts(ctx context.Context) ([]Member, error)
	// DrainHost sets whether a host is to start no more runs: those that it has go on, and what
	// one of all hosts does another one takes over. store.ErrNotFound; *Refusal for a host that
	// has its store to itself.
	DrainHost(ctx context.Context, id string, on bool) (Member, error)
	// AdmittedHosts are those that can open the vault, also while they are not there.
	AdmittedHosts(ctx context.Context) ([]AdmittedHost, error)
	// AdmissionCode is what an owner takes from this host to one that is admitted to the vault.
	AdmissionCode(ctx context.Context) (string, error)
	// AdmitHost admits a host with the code that it shows; *Refusal.
	AdmitHost(ctx context.Context, id, code string) error
	// RemoveHost takes a host out of the vault, and encrypts all secrets anew for the others.
	// store.ErrNotFound.
	RemoveHost(ctx context.Context, id string) error
	// RotateVault encrypts all secrets under a new key.
	RotateVault(ctx context.Context) error
	// AcceptVault goes on with the vault of a database that its owner has restored.
	AcceptVault(ctx context.Context) error
}

// An AdmittedHost can open the vault of the hosts that share a store.
type AdmittedHost struct {
	HostID     string    `json:"hostId"`
	AdmittedAt time.Time `json:"admittedAt"`
}

// A Member is one of the hosts that share a store.
type Member struct {
	HostID   string    `json:"hostId"`
	Name     string    `json:"name"` // of its machine
	Version  string    `json:"version"`
	URL      string    `json:"url,omitempty"` // where it is reached
	Labels   []string  `json:"labels"`        // what it has that others may not: browser
	Capacity int       `json:"capacity"`      // runs that execute at once
	Runs     int       `json:"runs"`          // active
	RunIDs   []string  `json:"runIds"`        // of them
	Admitted bool      `json:"admitted"`      // to the vault, so that it runs what needs a secret
	Draining bool      `json:"draining"`
	Leads    bool      `json:"leads"` // it delivers webhooks and deletes what is old
	Self     bool      `json:"self"`  // it is the one that answers
	JoinedAt time.Time `json:"joinedAt"`
	SeenAt   time.Time `json:"seenAt"` // by the clock of the store's server
}
