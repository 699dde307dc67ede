package cli

import (
	"os/exec"
	"syscall"
)

// apart has a command get no interrupt from the terminal, and end with this process.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
