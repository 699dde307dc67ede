//go:build unix

package cluster

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// audited are the targets of an action, as a host lists them, oldest first, and the hosts that wrote them.
func (m *member) audited(action string) (targets, hosts []string) {
	m.t.Helper()
	cursor := ""
	for {
		var page struct {
			Data       []host.AuditEntry
			NextCursor *string
		}
		m.do("GET", "/v1/audit?limit=3&action="+action+cursor, nil, &page)
		for _, e := range page.Data {
			targets, hosts = append(targets, e.Target), append(hosts, e.HostID)
		}
		if page.NextCursor == nil {
			slices.Reverse(targets)
			slices.Reverse(hosts)
			return targets, hosts
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

// note writes into the audit log of a host, as sluice secret set beside it does.
func (m *member) note(targets ...string) {
	m.t.Helper()
	l, err := audit.Open(m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, target := range targets {
		if err := l.Append(audit.Event{Action: audit.SecretSet, Target: target, Outcome: audit.Done}); err != nil {
			m.t.Fatal(err)
		}
	}
}

// command runs a command beside a host.
func (m *member) command(args ...string) (out string, err error) {
	m.t.Helper()
	cmd := exec.CommandContext(soon(m.t), os.Args[0], append(args, "--store", m.store)...)
	cmd.Env = append(os.Environ(), asCLI+"=1")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// What was done at one host is seen at every other one: what another process did beside it, what was done while
// the database was away, and all of it when the machine is gone.
func TestAuditLogOfAll(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	sees := func(m *member, want ...string) {
		t.Helper()
		until(t, strings.Join(want, " ")+" is in the audit log", func() bool {
			got, _ := m.audited("secret")
			return slices.Equal(got, want)
		})
	}
	a.note("one", "two")
	sees(b, "one", "two")
	b.note("three")
	sees(a, "one", "two", "three")
	c.proxies["a"].Mute(true)
	a.note("four", "five", "six")
	c.proxies["a"].Mute(false)
	sees(b, "one", "two", "three", "four", "five", "six")
	if _, hosts := b.audited("secret"); hosts[1] != a.id || hosts[2] != b.id || hosts[5] != a.id {
		t.Errorf("%v, of %s and %s", hosts, a.id, b.id)
	}
	if _, hosts := b.audited("host.admitted"); !slices.Equal(hosts, []string{a.id}) {
		t.Errorf("who admitted a host: %v", hosts)
	}
	a.kill()
	a.note("unseen") // and its machine goes with it
	old := a.id
	if err := os.RemoveAll(a.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sees(b, "one", "two", "three", "four", "five", "six")
	a = c.open("a") // is another host
	if a.id == old {
		t.Fatalf("a host without its data is still %s", old)
	}
	a.note("seven")
	sees(b, "one", "two", "three", "four", "five", "six", "seven")
	var copies struct{ Data []host.AuditCopy }
	b.do("GET", "/v1/audit/copies", nil, &copies)
	if len(copies.Data) != 3 {
		t.Errorf("%+v", copies.Data)
	}
	out, err := b.command("audit", "--action", "secret")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); err != nil || len(lines) < 7 || !strings.Contains(out, old) ||
		!strings.Contains(out, "seven") {
		t.Errorf("sluice audit: %v\n%s", err, out)
	}
	out, err = b.command("audit", "--action", "secret", "--here")
	if err != nil || !strings.Contains(out, "three") || strings.Contains(out, "seven") {
		t.Errorf("sluice audit --here: %v\n%s", err, out)
	}
	out, err = b.command("audit", "verify")
	if err != nil || strings.Count(out, "all as written") != 4 || !strings.Contains(out, "copied from host "+old+": ") {
		t.Errorf("sluice audit verify: %v\n%s", err, out)
	}
	c.server.Exec(t, postgres.NameOf(c.database), `delete from sluice_store.document
		where kind = 'audit-entry' and convert_from(id, 'UTF8') like '%/`+old+`/%/%2'`)
	out, err = b.command("audit", "verify")
	if err == nil || !strings.Contains(out, "follows entry 1") {
		t.Errorf("sluice audit verify of a copy with a gap: %v\n%s", err, out)
	}
	for _, one := range copies.Data {
		if one.Broken > 0 || one.Self != (one.HostID == b.id) {
			t.Errorf("%+v", one)
		}
	}
}

// What only the host has that performed a run is not found missing at another one: that says where it is.
func TestLeadsToPerformer(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	a.connect("steps", step{"do": "emit", "n": 1})
	id := a.begin("steps")
	b.wait(id, served.Over)
	for _, what := range []string{"recording", "requests"} {
		path := filepath.Join("/v1/runs", string(id), what)
		var refused *served.Failure
		_, err := b.Do(soon(t), "GET", path, nil, nil)
		if !errors.As(err, &refused) || refused.Code != "conflict" || refused.Details["hostId"] != a.id ||
			!strings.Contains(refused.Message, "/ui/runs/"+string(id)) {
			t.Errorf("%s at another host: %v", what, err)
		}
		_, err = a.Do(soon(t), "GET", path, nil, nil)
		if errors.As(err, &refused) && refused.Code == "conflict" {
			t.Errorf("%s at its host: %v", what, err)
		}
	}
}
