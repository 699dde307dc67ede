package browser

import (
	"fmt"
	"os"
	"strings"
)

// The uids that browsers of a root host have when nothing else is configured: above
// those of the sandbox's workers, or, in a container that maps few, below.
const (
	firstUID          = 300_000
	lastUID           = 309_999
	firstContainerUID = 40_000
	lastContainerUID  = 49_999
)

// uidRange is the range of B175; 0, 0 for a host that cannot give uids.
func uidRange(first, last int) (int, int) {
	switch {
	case os.Geteuid() != 0:
		return 0, 0
	case first != 0:
		return first, last
	case mapped(firstUID, lastUID):
		return firstUID, lastUID
	}
	return firstContainerUID, lastContainerUID
}

// mapped reports whether all uids of a range exist in this user namespace. A system
// that does not say so has them.
func mapped(first, last int) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil && inside <= first && last-inside < n {
			return true
		}
	}
	return false
}
