//go:build !linux

package chromium

import (
	"errors"
	"os/exec"
)

var errSystem = errors.New("browsers are kept on Linux only")

func harmless(*exec.Cmd) {}

func confine(*exec.Cmd, int, int) {}

func (g *group) live(_ *exec.Cmd, _ map[string][]string, started chan<- error) { started <- errSystem }

func (g *group) kill() {}

func canView() error { return errSystem }
