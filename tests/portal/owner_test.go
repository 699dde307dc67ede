package portal

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/portal/site"
)

const (
	password = "correct-horse"
	code     = "271828"
	patience = 3 * time.Minute // for a command that takes seconds
)

// An owner has a home directory that nobody else can enter, like root's, a bank, and
// the program.
type owner struct {
	t    *testing.T
	home string
	bank *site.Site
	url  string
	as   func(*exec.Cmd) // who runs the program; nil: who runs the test
	env  []string
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	home, err := os.MkdirTemp("", "sluice-owner-") // mode 0700
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	bank := site.New(site.Options{User: "ada", Password: password, Code: code})
	server := httptest.NewServer(bank)
	t.Cleanup(server.Close)
	o := &owner{t: t, home: home, bank: bank, url: server.URL}
	o.keep("password", password)
	return o
}

// keep writes a file into the home and returns its path.
func (o *owner) keep(name, text string) string {
	o.t.Helper()
	path := filepath.Join(o.home, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return path
}

// data is the default data directory.
func (o *owner) data(elements ...string) string {
	return filepath.Join(append([]string{o.home, ".local", "share", "sluice"}, elements...)...)
}

func (o *owner) command(args ...string) *exec.Cmd {
	cmd := exec.Command(built.sluice, args...)
	cmd.Dir = o.home
	cmd.Env = append(os.Environ(), "HOME="+o.home, "XDG_DATA_HOME=", "SLUICE_STORE=", "SLUICE_URL=",
		"SLUICE_CACHE="+built.cache, "NO_COLOR=1")
	cmd.Env = append(cmd.Env, o.env...)
	if o.as != nil {
		o.as(cmd)
	}
	return cmd
}

// grants are the flags that docs/browser-connectors.md gives for the portal.
func (o *owner) grants() []string {
	config, err := json.Marshal(map[string]string{"site": o.url, "user": "ada"})
	if err != nil {
		o.t.Fatal(err)
	}
	return []string{"--browser", "--config", string(config), "--allow-host", o.url, "--yes",
		"--secret", "password=@" + filepath.Join(o.home, "password"), "--secret-to", "password=" + o.url}
}

// portal is a run of the portal with the code at hand.
func (o *owner) portal(args ...string) []string {
	return append(append([]string{"run", built.portal, "--answer", "otp=" + code}, o.grants()...), args...)
}

// An outcome is what a command printed and how it ended.
type outcome struct {
	code int
	said string // both streams
}

func (o *owner) do(args ...string) outcome {
	o.t.Helper()
	cmd := o.command(args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // the exit code says it
	if !late.Stop() {
		o.t.Fatalf("%v did not end within %v\n%s", args, patience, said.String())
	}
	return outcome{cmd.ProcessState.ExitCode(), said.String()}
}

// want fails the test unless the command ended with a code and printed all of the
// texts.
func (got outcome) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("exit code %d, want %d", got.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(got.said, text) {
			t.Errorf("it did not say %q", text)
		}
	}
	if t.Failed() {
		t.Fatal(got.said)
	}
}

// browsers are the processes whose command line names something below the home.
func (o *owner) browsers() (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		o.t.Fatal(err)
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err == nil && bytes.Contains(line, []byte("--user-data-dir="+o.home)) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
