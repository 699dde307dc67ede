package run

import (
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// mostRemembered bounds what a run's guest can make the host keep until the end
// of the run: cursors, keys of gaps, lists of coverage. The limits of
// runtime.md §23 count messages, and a thousand of the largest would fill the
// host's memory.
const mostRemembered = 16 * abi.MiB

// remember takes note of n bytes more. False: they are too many, and the run has
// ended.
func (gs *gaps) remember(n int, typ string) bool {
	if gs.remembered += n; gs.remembered <= mostRemembered {
		return true
	}
	gs.outcome.violate(&abi.Violation{Subtype: abi.VMessageLimitExceeded, MessageType: typ, Detail: "limit " + itoa(mostRemembered) + " bytes to remember"})
	return false
}

// gapBytes is what is remembered of a gap: its names, not where its details are.
func gapBytes(g *store.DetailGap) int { return len(g.RecordKey) + len(g.Ref) + len(g.Reason) }

// coverageBytes counts keys as they are and a little for each.
func coverageBytes(m *abi.CoverageMessage) int {
	const each = 16
	n := 0
	for _, keys := range [][]string{m.RequiredKeys, m.HydratedKeys, m.GapKeys, m.OptionalSkipKeys} {
		for _, k := range keys {
			n += len(k) + each
		}
	}
	return n
}
