package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Destinations keeps databases and files of others up to date with what was collected.
type Destinations interface {
	// AddDestination checks that the destination can be reached, claims it, and begins to
	// feed it. With TakeOver it may be fed by another host so far.
	AddDestination(ctx context.Context, q NewDestination) (Destination, error)
	Destinations(ctx context.Context) ([]Destination, error)
	Destination(ctx context.Context, name string) (Destination, error)
	// SyncDestination brings everything in that is there now, and returns when it is
	// done; also for one that is paused. What fails is in Destination.Error.
	SyncDestination(ctx context.Context, name string) (Destination, error)
	// PauseDestination stops feeding it, or goes on.
	PauseDestination(ctx context.Context, name string, paused bool) (Destination, error)
	// RotateDestination has what is sent signed with another secret. For 24 hours the one
	// of before signs too.
	RotateDestination(ctx context.Context, name, secret string) (Destination, error)
	// RebuildDestination removes its tables, of one stream or with "" of all, and begins
	// anew. Versions that only a history has are lost.
	RebuildDestination(ctx context.Context, name string, connection store.ConnectionID, stream store.Stream) (Destination, error)
	// RemoveDestination forgets a destination. Its tables stay as they are.
	RemoveDestination(ctx context.Context, name string) error
}

// NewDestination is a destination as an owner asks for it.
type NewDestination struct {
	Name string `json:"name"`
	URL  string `json:"url"` // with credentials; no answer repeats them
	DestinationTerms
	TakeOver bool `json:"takeOver,omitempty"`
}

// DestinationTerms say what is fed into a destination, and when.
type DestinationTerms struct {
	Connections []string `json:"connections,omitempty"` // none: all
	Streams     []string `json:"streams,omitempty"`     // none: all
	Mode        string   `json:"mode,omitempty"`        // current (""), current+deleted or history
	// StreamModes are modes of single streams, by their name or by CONNECTION/STREAM.
	StreamModes map[string]string `json:"streamModes,omitempty"`
	Flatten     bool              `json:"flatten,omitempty"` // members of objects are columns
	Files       bool              `json:"files,omitempty"`   // the files of records come along
	// Cron says when it is fed, in UTC; "" is a second or two after each commit.
	Cron string `json:"cron,omitempty"`
}

// A Destination is where data goes.
type Destination struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	URL  string `json:"url"` // without credentials
	DestinationTerms
	// HostID is the host that feeds it, of those that share a store; "" while none does.
	HostID    string    `json:"hostId,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	Paused    bool      `json:"paused"`
	// State is idle, syncing, waiting (for another try, NextTry) or paused.
	State    string     `json:"state"`
	Error    string     `json:"error,omitempty"` // what the last try ended with, in a sentence
	NextTry  *time.Time `json:"nextTry,omitempty"`
	SyncedAt *time.Time `json:"syncedAt,omitempty"` // when it last had everything
	// PreviousSecretUntil is until when what is sent is signed with the secret before too.
	PreviousSecretUntil *time.Time `json:"previousSecretUntil,omitempty"`
	// Behind is how many versions it has not.
	Behind uint64              `json:"behind"`
	Tables []DestinationStream `json:"tables"`
}

// A DestinationStream is one table of a destination.
type DestinationStream struct {
	ConnectionID string `json:"connectionId"`
	Stream       string `json:"stream"`
	Table        string `json:"table"`
	Mode         string `json:"mode"`
	Version      uint64 `json:"version"` // everything up to it is there
	Behind       uint64 `json:"behind"`
}
