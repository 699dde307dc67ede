package host

import (
	"context"
	"time"
)

// Backups are made of everything, while the host runs.
type Backups interface {
	// Backup writes a file on the host's machine, as the user that the host runs as,
	// and restores it once, unless the drill is left out. It takes as long as that;
	// when ctx ends there is no file.
	Backup(ctx context.Context, q NewBackup) (Backup, error)
}

// NewBackup says where a backup goes and who can open it. Paths are absolute.
type NewBackup struct {
	To          []string `json:"to,omitempty"`          // age recipients, beside those that are kept
	NewIdentity string   `json:"newIdentity,omitempty"` // a file for a fresh identity, whose recipient is kept
	Plain       bool     `json:"plain,omitempty"`       // not encrypted
	Out         string   `json:"out,omitempty"`         // "" is a name in the data directory
	NoDrill     bool     `json:"noDrill,omitempty"`     // leave it unverified
}

// A Backup is one that was made.
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
