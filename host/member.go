package host

import (
	"context"
	"time"
)

// Hosts manages the hosts that share a store. A host with a store of its own is the only
// one.
type Hosts interface {
	// Hosts lists them by id.
	Hosts(ctx context.Context) ([]Member, error)
	// LostHosts lists by id the hosts whose lease ran out and that have not returned. Other
	// hosts ended their runs; Runs is their number.
	LostHosts(ctx context.Context) ([]Member, error)
	// DrainHost sets whether a host starts no more runs. Its active runs go on, and its
	// duties for all hosts pass to another. It returns store.ErrNotFound, or a *Refusal for
	// a host with a store of its own.
	DrainHost(ctx context.Context, id string, on bool) (Member, error)
	// AdmittedHosts lists the hosts that can open the vault, including those that are not
	// running.
	AdmittedHosts(ctx context.Context) ([]AdmittedHost, error)
	// AdmissionCode returns the code of this host, which an owner enters at a host that is
	// already admitted.
	AdmissionCode(ctx context.Context) (string, error)
	// AdmitHost admits a host by the code that it shows, or returns a *Refusal.
	AdmitHost(ctx context.Context, id, code string) error
	// RemoveHost removes a host from the vault and re-encrypts all secrets for the others.
	// It returns store.ErrNotFound for an unknown host.
	RemoveHost(ctx context.Context, id string) error
	// RotateVault re-encrypts all secrets with a new key.
	RotateVault(ctx context.Context) error
	// AcceptVault accepts the vault of a database that its owner restored from a backup.
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
	Name     string    `json:"name"` // of the machine
	Version  string    `json:"version"`
	URL      string    `json:"url,omitempty"` // where it is reached
	Labels   []string  `json:"labels"`        // such as browser; runs can require them
	Capacity int       `json:"capacity"`      // runs at once
	Runs     int       `json:"runs"`          // active runs
	RunIDs   []string  `json:"runIds"`        // of the active runs
	Admitted bool      `json:"admitted"`      // to the vault; otherwise it gets no runs that need a secret
	Draining bool      `json:"draining"`
	Leads    bool      `json:"leads"` // delivers webhooks and deletes expired data
	Self     bool      `json:"self"`  // is the host that answers
	JoinedAt time.Time `json:"joinedAt"`
	SeenAt   time.Time `json:"seenAt"` // by the clock of the database server
}
