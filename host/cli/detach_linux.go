package cli

import (
	"os/exec"
	"syscall"
)

// detach keeps a command from the terminal's interrupts and ends it with this process.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
