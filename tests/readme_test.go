package tests

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/build"
)

// TestREADME runs every shell command of README.md, in order, in a fresh checkout with an
// empty home directory: the README must be true for a newcomer.
func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: builds and compiles every example")
	}
	clone := cloneTree(t)
	home := t.TempDir()
	calendar := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\nBEGIN:VEVENT\r\nUID:1@example\r\n" +
		"DTSTAMP:20260101T000000Z\r\nDTSTART:20260102T100000Z\r\nSUMMARY:Meeting\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	write(t, filepath.Join(home, "calendars", "work.ics"), calendar)
	binary, err := build.Program()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+home, "XDG_DATA_HOME=", "SLUICE_STORE=", "SLUICE_CACHE="+cache,
		"GOPATH="+goEnv(t, "GOPATH"), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	for _, line := range commandsOf(t, filepath.Join(clone, "README.md")) {
		line = strings.ReplaceAll(line, "go run .", binary)
		// compiled once is enough
		line = strings.Replace(line, "CGO_ENABLED=0 go build -o sluice .", "cp "+binary+" sluice", 1)
		t.Log(line)
		run(t, clone, env, "sh", "-ec", line)
	}
	demo(t, clone, env, binary)
}

// demo runs sluice demo without a terminal until it prints the login link, opens the
// link, and interrupts the program, which must end well and leave nothing behind.
func demo(t *testing.T, dir string, env []string, binary string) {
	t.Helper()
	temp := t.TempDir()
	cmd := exec.Command(binary, "demo")
	cmd.Dir, cmd.Env = dir, append(env, "TMPDIR="+temp)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	link := ""
	lines := bufio.NewScanner(out)
	for link == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "/ui/login#") {
			link = lines.Text()
		}
	}
	if link == "" {
		t.Fatalf("demo ended without a link: %v\n%s", cmd.Wait(), said.String())
	}
	if !strings.Contains(said.String(), "FROM git.commits GROUP BY 1") {
		t.Errorf("demo asked nothing about what it collected:\n%s", said.String())
	}
	at, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get("http://127.0.0.1:" + at.Port() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("readyz: %s", res.Status)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("demo: %v\n%s", err, said.String())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("demo left %v in its temporary directory: %v", left, err)
	}
}

// cloneTree copies the working tree's files into a repository of their own, with a history of two commits: commands
// are the same as in a clone, and collect it in seconds.
func cloneTree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sluice")
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(b))
	}
	run(t, dir, nil, "git", "init", "-q")
	for _, files := range []string{"README.md", "."} {
		run(t, dir, nil, "git", "add", files)
		run(t, dir, nil, "git", "-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgSign=false",
			"commit", "-q", "-m", "add "+files)
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commandsOf lists the lines of the README's sh blocks.
func commandsOf(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	inside := false
	for line := range strings.Lines(string(b)) {
		switch line = strings.TrimSpace(line); {
		case line == "```sh":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside && line != "":
			out = append(out, line)
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %d commands found in %s", len(out), path)
	}
	return out
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// run executes a command; if it fails, the test fails with its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said.String())
	}
}
