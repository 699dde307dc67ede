package cli

import (
	"os/exec"
	"syscall"
)

// apart keeps a command from the terminal's interrupts and ends it with this process.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
