// Package playwright is for tests that have Playwright do what Sluice does, on the
// same pages and with the same browser.
package playwright

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/npm"
)

//go:embed playwright.cjs
var script []byte

// A Process drives one browser with Playwright, a step at a time.
type Process struct {
	in  io.Writer
	out *bufio.Scanner
}

// Start starts a Process with the browser at a path. It ends with the test.
func Start(tb testing.TB, chromium string) *Process {
	tb.Helper()
	dir := tb.TempDir()
	npm.PlaywrightCore.Unpack(tb, dir)
	path := filepath.Join(dir, "playwright.cjs")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command("node", path) // #nosec G204 -- a script of these tests; it ends with its input
	cmd.Env, cmd.Stderr = append(os.Environ(), "BROWSER="+chromium), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start node, which Playwright needs: %v", err)
	}
	p := &Process{in, bufio.NewScanner(out)}
	p.out.Buffer(nil, 4<<20) // a page in one line
	tb.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Error(err)
		}
	})
	if !p.out.Scan() {
		tb.Fatalf("Playwright did not start: %v", p.out.Err())
	}
	return p
}

// A Step is what is done: goto, click, aria, content or work.
type Step struct {
	Do   string `json:"do"`
	URL  string `json:"url,omitempty"`
	Name string `json:"name,omitempty"` // of the button
	Read string `json:"read,omitempty"` // whose text is read after a click
}

// Do carries a step out and returns how long it took there, and what was read. The
// error is Playwright's own.
func (p *Process) Do(tb testing.TB, s Step) (took time.Duration, text string, err error) {
	tb.Helper()
	line, err := json.Marshal(s)
	if err == nil {
		_, err = fmt.Fprintf(p.in, "%s\n", line)
	}
	if err != nil || !p.out.Scan() {
		tb.Fatalf("Playwright is gone: %v, %v", err, p.out.Err())
	}
	var a struct {
		MS          float64
		Text, Error string
	}
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		tb.Fatalf("Playwright says %s: %v", p.out.Bytes(), err)
	}
	if a.Error != "" {
		err = errors.New(a.Error)
	}
	return time.Duration(a.MS * float64(time.Millisecond)), a.Text, err
}

// Must is Do for a step that works.
func (p *Process) Must(tb testing.TB, s Step) (took time.Duration, text string) {
	tb.Helper()
	took, text, err := p.Do(tb, s)
	if err != nil {
		tb.Fatalf("Playwright: %s: %v", s.Do, err)
	}
	return took, text
}
