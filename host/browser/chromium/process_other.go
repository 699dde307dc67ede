//go:build !linux

package chromium

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

var errSystem = errors.New("browsers are kept on Linux only")

func harmless(*exec.Cmd) {}

func confine(*exec.Cmd, int, int) {}

func (g *group) live(_ *exec.Cmd, _ map[string][]string, started chan<- error) { started <- errSystem }

func (g *group) kill() {}

func canView() error { return errSystem }

// Leftovers does nothing on this system, which has no browsers.
func Leftovers(string) (ended, left int) { return 0, 0 }

func endLeftProcesses(_, _ string, _ int) int { return 0 }

func smallSharedMemory() bool { return true }

func ownedBy(os.FileInfo, int, int) bool { return true }

func inspect(int) (sandbox, bool) { return sandbox{}, false }

const insideURL = ""

func canUnshare() error { return errors.ErrUnsupported }

func ownNetwork(*exec.Cmd) {}

func listenInside(int) (net.Listener, error) { return nil, errors.ErrUnsupported }
