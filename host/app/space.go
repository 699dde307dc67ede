package app

import (
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// The free disk space in bytes below which no run is started, and below which the store stays closed.
const (
	spaceStart = 512 * abi.MiB
	spaceStop  = 64 * abi.MiB
)

// checkSpace refuses a start, an installation or a grant while the disk is nearly full, before anything is
// written. The error is a *run.Refusal.
func (d *directory) checkSpace() error {
	if d.DataDir == "" {
		return nil
	}
	free, known := freeSpace(d.DataDir)
	if !known || free >= spaceStart {
		return nil
	}
	return refusal("store_no_space",
		fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed; free some disk space and start again",
			store.ErrNoSpace, free/abi.MiB, d.DataDir, spaceStart/abi.MiB))
}
