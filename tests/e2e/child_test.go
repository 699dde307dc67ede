package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// A child is sluice serve as a process of its own.
type child struct {
	*served.Client
	cmd   *exec.Cmd
	Login web.Login
}

// serve starts sluice serve and returns once it listens.
func serve(t *testing.T, dir string) *child {
	t.Helper()
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("shortest_interval: 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &child{Client: served.Socket(filepath.Join(dir, daemon.SocketName))}
	c.cmd = exec.Command(os.Args[0], "serve", "--config", config, "--listen", "127.0.0.1:0", "--store", "badger:"+dir,
		"--json", "--quiet")
	c.cmd.Env = append(os.Environ(), asCLI+"=1", "SLUICE_CACHE="+cache)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadBytes('}')
	if err == nil {
		err = json.Unmarshal(line, &c.Login)
	}
	if err != nil {
		t.Fatalf("the service did not start: %v", err)
	}
	return c
}

// kill ends the process at once, wherever it is.
func (c *child) kill() {
	if c.cmd.ProcessState != nil {
		return
	}
	_ = c.cmd.Process.Kill() // it may be over
	_ = c.cmd.Wait()         // killed
	c.HTTP.CloseIdleConnections()
}
