//go:build !linux

package jail

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Without layers a canary has nothing to attempt. It only reports its level.
func attemptNames() []string { return []string{stayPut} }

func mustBlock(string, Isolation) bool { return false }

func attempt(string, targets) error { return errors.New("no such attempt") }

type bait struct{ name string }

func openBait() (*bait, error) { return &bait{}, nil }

func (*bait) close() {}

func whyNoLayer() (cause, remedy string) {
	return runtime.GOOS + " has no such layer; a worker is a process with limits", "run untrusted connectors on Linux"
}

var whyNoUID, whyNoNamespaces, whyNoLandlock, whyNoSeccomp, whyNoLimits, whyNoGroup = whyNoLayer, whyNoLayer,
	whyNoLayer, whyNoLayer, whyNoLayer, whyNoLayer

// groups and group are empty, because only Linux has control groups.
type (
	groups struct{}
	group  struct{}
)

func findGroups() *groups { return nil }

// FreeMemory returns false, because it is unknown on this system.
func FreeMemory() (free uint64, known bool) { return 0, false }

func (*groups) make() (*group, error) { return nil, nil }

func (*group) enter(int) error { return nil }

func (*group) bound(Limits) error { return nil }

func (*group) ranOut() bool { return false }

func (*group) remove() error { return nil }

// MemFD returns a read-only file that contains parts, one after the other, without a name if the system permits that.
// Unlike on Linux it is not sealed: this process could have changed it while writing.
func MemFD(name string, parts ...[]byte) (*os.File, error) {
	out, err := os.CreateTemp("", name+"-*")
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	defer os.Remove(out.Name()) // if open files cannot be removed, the system's cleaner does it
	for _, part := range parts {
		if err == nil {
			_, err = out.Write(part)
		}
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("fill memory file: %w", err)
	}
	in, err := os.Open(out.Name())
	if err != nil {
		return nil, fmt.Errorf("reopen memory file: %w", err)
	}
	return in, nil
}

// boundChildren does nothing, because these systems have no such sets of capabilities.
func boundChildren() {}
