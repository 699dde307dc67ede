//go:build unix

package cluster

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// wrongClock is how far the clock of a host built by skewed is ahead.
const wrongClock = "SLUICE_TEST_CLOCK"

// skewed builds the program with a standard library whose time.Now is ahead by what wrongClock says.
// The program itself has no such thing.
func skewed(t *testing.T) (program string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reads) != 1 {
		t.Fatalf("time.Now of %s reads otherwise", runtime.Version())
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	program = filepath.Join(dir, "sluice")
	about, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: changed, filepath.Join(filepath.Dir(original), "wrong.go"): filepath.Join(dir, "wrong.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		changed: strings.Replace(string(text), reads, reads+"\tsec += wrong\n", 1),
		overlay: string(about),
		filepath.Join(dir, "wrong.go"): `package time

import "syscall"

var wrong = func() int64 {
	text, _ := syscall.Getenv("` + wrongClock + `")
	d, _ := ParseDuration(text)
	return int64(d / Second)
}()
`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", program, "github.com/sluicehost/sluice")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// Hosts whose clocks are ten minutes before and behind the server's share it as others do: nobody is
// removed, a schedule starts at its interval and once, what runs and keys say of the time is the
// server's, and the newest run is the first of the list.
func TestWrongClocks(t *testing.T) {
	if !campaign.Soak() {
		t.Skip("make soak runs it, for it builds everything anew; here TestStoreClock of host/run stands for it")
	}
	t.Parallel()
	c := start(t, postgres.Shared(t))
	c.program = skewed(t)
	c.env = map[string]string{"ahead": wrongClock + "=10m", "behind": wrongClock + "=-10m"}
	c.add("ahead", "behind")
	ahead, behind := c.hosts["ahead"], c.hosts["behind"]
	c.server.Exec(t, c.name(), postgres.History)
	ahead.install()
	second, names := int64(1), []string{"s0", "s1", "s2", "s3"}
	for _, name := range names {
		ahead.connect(store.ConnectionID(name), step{"do": "emit", "n": 1})
		ahead.do("PUT", "/v1/connections/"+name+"/schedule", host.ScheduleDefinition{IntervalSeconds: &second}, nil)
	}
	runs := func(name string) (all []timeline.Snapshot) {
		var page struct{ Data []timeline.Snapshot }
		behind.do("GET", "/v1/runs?limit=200&connectionId="+name, nil, &page)
		return page.Data
	}
	until(t, "both hosts have started runs of every connection", func() bool {
		for _, name := range names {
			if len(runs(name)) < 4 {
				return false
			}
		}
		return c.server.Exec(t, c.name(), "select count(distinct writer) from history where op = 'INSERT'") == "2"
	})
	for _, name := range names {
		ahead.do("DELETE", "/v1/connections/"+name+"/schedule", nil, nil)
		all := runs(name)
		for _, r := range all {
			ahead.wait(r.RunID, served.Over)
			ahead.whole(r.RunID)
			if d := time.Since(at(t, r)); d < -time.Minute || d > 5*time.Minute {
				t.Errorf("run %s started %s ago", r.RunID, d)
			}
		}
		slices.Reverse(all)
		for i, r := range all[1:] {
			if d := at(t, r).Sub(at(t, all[i])); d < 900*time.Millisecond {
				t.Errorf("run %s of an interval of a second started %s after the one before", r.RunID, d)
			}
		}
	}
	if wrong := c.server.Exec(t, c.name(), postgres.Violations); wrong != "" {
		t.Errorf("history: %s", wrong)
	}
	if n := len(ahead.list()); n != 2 {
		t.Errorf("%d hosts are there", n)
	}
	for _, pair := range [][2]*member{{ahead, behind}, {behind, ahead}} {
		var made struct{ Key string }
		pair[0].do("POST", "/v1/api-keys", map[string]any{
			"name": "short", "mode": access.Live, "scopes": access.All(), "expiresAt": time.Now().Add(5 * time.Minute),
		}, &made)
		base := pair[1].tcp()
		k := &served.Client{Base: base, Key: made.Key, HTTP: http.DefaultClient}
		if _, err := k.Do(soon(t), "GET", "/v1/hosts", nil, nil); err != nil {
			t.Errorf("a key for five minutes: %v", err)
		}
		var link web.Login
		pair[0].do("POST", "/ui/login-link", nil, &link)
		_, token, _ := strings.Cut(link.URL, "#")
		own := &served.Client{Base: base, HTTP: http.DefaultClient}
		if _, err := own.Do(soon(t), "POST", "/ui/session", map[string]any{"token": token}, nil, "Origin", base,
			"Sec-Fetch-Site", "same-origin"); err != nil {
			t.Errorf("a link of one host at another: %v", err)
		}
	}
}

// tcp is where the host is reached by those who have a key.
func (m *member) tcp() string {
	at, _, _ := strings.Cut(m.login.PlainURL, "/ui/")
	return at
}

// at is when a run started.
func at(t *testing.T, r timeline.Snapshot) time.Time {
	t.Helper()
	started, err := time.Parse(time.RFC3339, r.StartedAt)
	if err != nil {
		t.Fatal(err)
	}
	return started
}
