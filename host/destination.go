package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Destinations keeps databases and files outside Sluice up to date with collected data.
type Destinations interface {
	// AddDestination checks that the destination can be reached, claims it, and begins to
	// feed it. With TakeOver it may take it from another host.
	AddDestination(ctx context.Context, q NewDestination) (Destination, error)
	Destinations(ctx context.Context) ([]Destination, error)
	Destination(ctx context.Context, name string) (Destination, error)
	// SyncDestination writes all present data and returns when that is done, even if the
	// destination is paused. Destination.Error holds a failure.
	SyncDestination(ctx context.Context, name string) (Destination, error)
	// PauseDestination stops feeding a destination, or resumes it.
	PauseDestination(ctx context.Context, name string, paused bool) (Destination, error)
	// RotateDestination replaces the signing secret. The previous one signs as well for
	// another 24 hours.
	RotateDestination(ctx context.Context, name, secret string) (Destination, error)
	// RebuildDestination drops the tables of one stream, or of all streams for "", and
	// fills them anew. Versions that exist only in a history table are lost.
	RebuildDestination(ctx context.Context, name string, connection store.ConnectionID,
		stream store.Stream) (Destination, error)
	// RemoveDestination forgets a destination and leaves its tables as they are.
	RemoveDestination(ctx context.Context, name string) error
}

// NewDestination is an owner's request for a destination.
type NewDestination struct {
	Name string `json:"name"`
	URL  string `json:"url"` // with credentials; no answer repeats them
	DestinationTerms
	TakeOver bool `json:"takeOver,omitempty"`
}

// DestinationTerms say what a destination is fed, and when.
type DestinationTerms struct {
	Connections []string `json:"connections,omitempty"` // none: all
	Streams     []string `json:"streams,omitempty"`     // none: all
	Mode        string   `json:"mode,omitempty"`        // current (""), current+deleted or history
	// StreamModes overrides Mode for single streams, by stream name or CONNECTION/STREAM.
	StreamModes map[string]string `json:"streamModes,omitempty"`
	Flatten     bool              `json:"flatten,omitempty"` // members of objects become columns
	Files       bool              `json:"files,omitempty"`   // include the files of records
	// Cron is when it is fed, in UTC; "" is within a second or two of each commit.
	Cron string `json:"cron,omitempty"`
}

// A Destination is a place outside Sluice that is fed with collected data.
type Destination struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	URL  string `json:"url"` // without credentials
	DestinationTerms
	// HostID is the host that feeds it, among those that share a store; "" for none.
	HostID    string    `json:"hostId,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	Paused    bool      `json:"paused"`
	// State is idle, syncing, waiting (until NextTry) or paused.
	State    string     `json:"state"`
	Error    string     `json:"error,omitempty"` // of the last attempt, in a sentence
	NextTry  *time.Time `json:"nextTry,omitempty"`
	SyncedAt *time.Time `json:"syncedAt,omitempty"` // when it was last complete
	// PreviousSecretUntil is when the previous secret stops signing.
	PreviousSecretUntil *time.Time `json:"previousSecretUntil,omitempty"`
	// Behind counts the versions that are not written yet.
	Behind uint64              `json:"behind"`
	Tables []DestinationStream `json:"tables"`
}

// A DestinationStream is one table of a destination, or a stream that could get none.
type DestinationStream struct {
	ConnectionID string `json:"connectionId"`
	Stream       string `json:"stream"`
	Table        string `json:"table"` // "" for none
	Mode         string `json:"mode"`
	Version      uint64 `json:"version"` // written up to here
	Behind       uint64 `json:"behind"`
	// Error is why the table cannot be written, in a sentence. The others are written.
	Error string `json:"error,omitempty"`
}
