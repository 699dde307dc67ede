//go:build unix

package crash

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights, for a test that runs as root.
const nobody = 65534

// refused runs a command that must end with code 6 and the error, and say all
// of what is wanted.
func refused(p program, cmd *exec.Cmd, name string, want ...string) {
	p.t.Helper()
	o := p.finish(cmd)
	var e struct{ Error, Message string }
	if err := json.Unmarshal([]byte(o.out), &e); err != nil || o.code != 6 || e.Error != name {
		p.t.Errorf("%v: code %d, %s%s", cmd.Args[1:], o.code, o.out, o.errs)
	}
	for _, w := range want {
		if !strings.Contains(e.Message, w) {
			p.t.Errorf("%v: %q is not in %q", cmd.Args[1:], w, e.Message)
		}
	}
}

// TestUnwritable: a data directory that cannot be made or written is a fault of
// the host (code 6); the message names it and says what to do.
func TestUnwritable(t *testing.T) {
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Error(err)
		}
	})
	for _, data := range []string{parent, filepath.Join(parent, "data")} {
		p := program{t: t, data: data}
		cmd := p.run(1)
		if os.Geteuid() == 0 {
			cmd.Path = reachable(t)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		refused(p, cmd, "path_unusable", data, "permission denied", "--store badger:DIR")
	}
}

// reachable returns a copy of the program that every user can start.
func reachable(t *testing.T) string {
	t.Helper()
	if fi, err := os.Stat(built.sluice); err != nil || fi.Mode()&0o005 == 0 {
		t.Fatalf("%s: %v, %v", built.sluice, fi, err)
	}
	return built.sluice
}

// TestInUse: a second process is told which one has the directory (exit
// code 6), and the first is not disturbed.
func TestInUse(t *testing.T) {
	w := newWitness(program{t: t, data: filepath.Join(t.TempDir(), "data")})
	l := w.start(2 * pagesPerRun)
	l.await(1)
	if err := l.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(l.cmd.Process.Pid)
	refused(w.p, w.p.run(1), "store_in_use", w.p.data, "process "+pid, "stop it")
	refused(w.p, w.p.command("runs", "--json"), "store_in_use", w.p.data, "process "+pid, "stop it")
	if err := l.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	adopt(t)
	w.succeed(l)
	w.check()
}
