package host

import (
	"context"
	"time"
)

// Backups copies everything that the host stores into one file, while it runs.
type Backups interface {
	// Backup writes a file on the host's machine, as the host's user, and returns once it
	// has been restored as a drill, unless NoDrill is set. It leaves no file when ctx ends.
	Backup(ctx context.Context, q NewBackup) (Backup, error)
}

// NewBackup says where a backup goes and who can open it. Paths are absolute.
type NewBackup struct {
	To          []string `json:"to,omitempty"`          // age recipients, in addition to those that are kept
	NewIdentity string   `json:"newIdentity,omitempty"` // file for a new identity, whose recipient is kept
	Plain       bool     `json:"plain,omitempty"`       // not encrypted
	Out         string   `json:"out,omitempty"`         // "" is a generated name in the data directory
	NoDrill     bool     `json:"noDrill,omitempty"`     // skip the verifying restore
}

// A Backup is a backup that was made.
type Backup struct {
	File      string    `json:"file"`
	Created   time.Time `json:"created"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	Encrypted bool      `json:"encrypted"`
	Verified  bool      `json:"verified"`
	Records   uint64    `json:"records"`
	Streams   int       `json:"streams"`
	Modules   int       `json:"modules"`
	Secrets   int       `json:"secrets"`
	Recipient string    `json:"recipient,omitempty"` // of a new identity
}
