package portal

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// held starts a command and returns it, still running, once it has printed a text.
func (o *owner) held(until string, args ...string) *exec.Cmd {
	o.t.Helper()
	cmd := o.command(args...)
	r, w, err := os.Pipe()
	if err != nil {
		o.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	_ = w.Close()
	o.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = r.Close()
	})
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var said strings.Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), until) {
			go func() { _, _ = io.Copy(io.Discard, r) }() // so that it can go on
			return cmd
		}
	}
	o.t.Fatalf("%v did not say %q:\n%s", args, until, said.String())
	return nil
}

// Ctrl-C and a kill in the middle of a run leave no browser.
func TestEnd(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			o := newOwner(t)
			cmd := o.held("Signing in", o.portal()...)
			if len(o.browsers()) == 0 {
				t.Fatal("no browser runs")
			}
			if err := cmd.Process.Signal(how); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_ = cmd.Wait()
			for len(o.browsers()) > 0 {
				if time.Since(began) > patience { // a second, on a machine at rest
					t.Fatalf("browsers are left: %v", o.browsers())
				}
			}
			t.Logf("gone after %v", time.Since(began).Round(time.Millisecond))
		})
	}
}
