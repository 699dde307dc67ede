//go:build !linux

package crash

import "testing"

// Orphans cannot be adopted here. They hold the timeline's pipe open, so its end shows
// that they ended.
func adopt(*testing.T) {}

func orphansGone(*testing.T) int { return 0 }
