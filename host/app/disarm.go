package app

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/assistant"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// RestoreOptions say what is restored and what stays active.
type RestoreOptions struct {
	File     string // the backup
	Identity string // a file with an age identity; "" for a backup in plain text
	// KeepSchedules leaves schedules enabled, and KeepKeys leaves API keys and sessions valid.
	KeepSchedules, KeepKeys bool
}

// Disarmed counts what was paused or revoked in a restored host.
type Disarmed struct {
	KeysRevoked        int `json:"keys_revoked"` // including the tokens of assistants
	SchedulesPaused    int `json:"schedules_paused"`
	DestinationsPaused int `json:"destinations_paused"` // always, because they belong to the original host
}

// disarm pauses the schedules and destinations and revokes the keys of a directory that was just unpacked,
// before the directory is moved into place.
func disarm(ctx context.Context, dir string, o RestoreOptions) (d Disarmed, err error) {
	s, err := drivers.Open("badger:"+dir, drivers.Options{AllowNetworkFS: true}) // checked when the result is opened
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Write(ctx, store.Write{Kind: store.Installation, ID: boundName}); err != nil { // a new store
		return d, err
	}
	if d.DestinationsPaused, err = destination.PauseAll(ctx, s); err != nil {
		return d, err
	}
	if !o.KeepSchedules {
		if d.SchedulesPaused, err = schedule.PauseAll(ctx, s); err != nil {
			return d, err
		}
	}
	if !o.KeepKeys {
		if d.KeysRevoked, err = access.RevokeAll(ctx, s, time.Now()); err != nil {
			return d, err
		}
		var tokens int
		tokens, err = assistant.RevokeAll(ctx, s, time.Now())
		d.KeysRevoked += tokens
	}
	return d, err
}
