//go:build unix

package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/postgres"
)

// demo starts sluice demo in the checkout, with temporary files of its own.
func demo(t *testing.T, said io.Writer, args ...string) (cmd *exec.Cmd, lines *bufio.Scanner, temp string) {
	t.Helper()
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	temp, err = os.MkdirTemp("", "sluice-demos-")
	if err == nil {
		err = os.Chmod(temp, 0o755) // a server runs as another user
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	cmd = exec.Command(os.Args[0], append([]string{"demo", "--hosts", "3"}, args...)...)
	cmd.Dir, cmd.Stderr = "../..", said
	cmd.Env = append(os.Environ(), asCLI+"=1", "SLUICE_CACHE="+cache, "TMPDIR="+temp)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		if late.Stop(); cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
		}
	})
	return cmd, bufio.NewScanner(out), temp
}

// left checks that a demo that was interrupted left neither files nor processes.
func left(t *testing.T, cmd *exec.Cmd, said *bytes.Buffer, temp string) {
	t.Helper()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 5 { // served until then, or was cancelled
		t.Errorf("the demo ended with %s", cmd.ProcessState)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("the demo left %v: %v", left, err)
	}
	for _, found := range regexp.MustCompile(`is process (\d+)`).FindAllStringSubmatch(said.String(), -1) {
		pid, err := strconv.Atoi(found[1])
		if err == nil {
			err = syscall.Kill(pid, 0)
		}
		if !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is left: %v", pid, err)
		}
	}
}

// The demo of several hosts kills the one that has a run, shows how another one takes over, and
// leaves nothing in the database that it was lent.
func TestDemo(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	database, err := server.Create("lent")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd, lines, temp := demo(t, &said, "--store", database)
	link := ""
	for link == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "/ui/login#") {
			link = lines.Text()
		}
	}
	if link == "" {
		t.Fatalf("the demo ended without a link: %v\n%s", cmd.Wait(), said.String())
	}
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get("http://127.0.0.1:" + at.Port() + "/readyz") // not every resolver knows names of localhost
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("a host that is left is not ready: %s", res.Status)
	}
	for _, want := range []string{"kill -9", "(controller_restarted)", "starts it again", "FROM git.commits GROUP BY 1"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the demo says nothing of %q", want)
		}
	}
	if n := server.Exec(t, "lent", "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'sluice%'"); n != "1" {
		t.Errorf("%s schemas while the demo goes on", n)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // left looks at how it ended
	left(t, cmd, &said, temp)
	if n := server.Exec(t, "lent", "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'sluice%'"); n != "0" {
		t.Errorf("the demo left %s schemas", n)
	}
	if t.Failed() {
		t.Log(said.String())
	}
}

// A demo with a server of its own is interrupted while it is at work, and cleans up as well.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	postgres.Shared(t)
	said := &bytes.Buffer{}
	r, w := io.Pipe()
	cmd, _, temp := demo(t, w, "--postgres")
	lines := bufio.NewScanner(io.TeeReader(r, said))
	for lines.Scan() && !strings.Contains(lines.Text(), "host B is process") {
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(said, r)
		read <- err
	}()
	err := cmd.Process.Signal(os.Interrupt)
	if err == nil {
		_ = cmd.Wait() // left looks at how it ended
		err = w.Close()
	}
	if err := errors.Join(err, <-read); err != nil {
		t.Fatal(err)
	}
	left(t, cmd, said, temp)
	if t.Failed() {
		t.Log(said.String())
	}
}
