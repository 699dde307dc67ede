//go:build unix

package postgres_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/postgres"
)

func TestServer(t *testing.T) {
	s := postgres.Shared(t)
	if a, b := postgres.New(t), postgres.New(t); a == b {
		t.Errorf("two databases are %s", a)
	}
	s.Exec(t, "test_1", "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x')")
	if got := s.Exec(t, "test_1", "SELECT a, b FROM t"); got != "1|x" {
		t.Errorf("got %q", got)
	}
}

// TestEnds starts a process of its own that is killed: its server is gone, and its directory.
func TestEnds(t *testing.T) {
	if os.Getenv("SLUICE_TEST_SERVER") != "" {
		s := postgres.Shared(t)
		os.Stdout.WriteString("\ndir " + s.Dir + "\n")
		select {}
	}
	postgres.Shared(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestEnds$")
	cmd.Env = append(os.Environ(), "SLUICE_TEST_SERVER=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for buf := make([]byte, 1000); !strings.HasSuffix(said.String(), "\n") || !strings.Contains(said.String(), "dir "); {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v after %q", err, said.String())
		}
	}
	_, dir, _ := strings.Cut(strings.TrimSpace(said.String()), "dir ")
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for range 3000 {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%s is still there", dir)
}
