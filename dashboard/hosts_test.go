package dashboard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
)

// The settings show the hosts that share a store, and what is to be done about them; a host that
// has its store to itself has no such section.
func TestHosts(t *testing.T) {
	s := open(t)
	if page := s.page("/ui/settings"); strings.Contains(page, `id="hosts"`) {
		t.Error("a host that has its store to itself lists hosts")
	}
	now := time.Now()
	s.host.hosts = []host.Member{
		{HostID: "host_a", Name: "oak<b>", Version: "1.2.3", URL: "https://a.example",
			Labels: []string{"browser", "site=berlin"}, Capacity: 8, Runs: 1,
			RunIDs: []string{"run_0000000000000000000000001a"}, Admitted: true, Self: true, Leads: true, SeenAt: now},
		{HostID: "host_b", Name: "elm", Version: "1.2.4", Capacity: 8, Draining: true, SeenAt: now},
	}
	s.host.lost = []host.Member{{HostID: "host_c", Name: "ash", Version: "1.2.3", Runs: 2, SeenAt: now.Add(-time.Minute)}}
	page := s.page("/ui/settings")
	for _, want := range []string{
		`id="hosts"`, "oak&lt;b&gt;", `href="https://a.example"`, "site=berlin", "1 of 8 runs",
		`href="/ui/runs/run_0000000000000000000000001a"`, "this one", "leads", "/ui/hosts/host_a/drain",
		"/ui/hosts/host_b/undrain", "elm is drained and has no runs", "versions 1.2.3 and 1.2.4", "ash</bdi> was lost",
		"2 runs of it were ended", "host_c", "not admitted", "elm is not admitted to the vault", "sluice hosts admit host_b",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "hosts admit host_a") {
		t.Error("a host that is admitted is to be admitted")
	}
	if strings.Contains(page, "No host starts runs") {
		t.Error("a host starts runs, and the page says that none does")
	}
	s.host.hosts[0].Draining = true
	if page := s.page("/ui/settings"); !strings.Contains(page, "No host starts runs") {
		t.Error("the page does not say that no host starts runs")
	}
	for path, want := range map[string]string{"drain": "host_a on", "undrain": "host_a off"} {
		if a := s.post("/ui/hosts/host_a/"+path, map[string][]string{}); a.status != 204 || s.host.drained != want {
			t.Errorf("%s: %d %s, %q", path, a.status, a.body, s.host.drained)
		}
	}
}

// The page of a run that another host has says so where that host does not tell what the run uses.
func TestRunElsewhere(t *testing.T) {
	s := open(t)
	s.run("run_1", "bank")
	here := s.page("/ui/runs/run_1")
	if strings.Contains(here, "does not tell at the moment") || !strings.Contains(here, "<dt>Phase</dt>") {
		t.Errorf("the page of a run of this host: %s", here)
	}
	s.host.elsewhere = &host.Member{HostID: "host_b", Name: "elm", URL: "https://b.example"}
	there := s.page("/ui/runs/run_1")
	if !strings.Contains(there, "does not tell at the moment") || !strings.Contains(there, `href="https://b.example"`) ||
		strings.Contains(there, "<dt>Phase</dt>") || strings.Contains(there, "Not measured") {
		t.Errorf("the page of a run of another host: %s", there)
	}
}

// The audit log of hosts that share a store says of each entry which one wrote it; that of one host does not.
func TestAuditSaysHost(t *testing.T) {
	s := open(t)
	s.host.entries = []host.AuditEntry{{AuditID: "aud_1", Action: "key.created"}}
	if page := s.page("/ui/audit"); strings.Contains(page, ">Host</th>") {
		t.Errorf("one host: %s", page)
	}
	s.host.entries = append(s.host.entries, host.AuditEntry{AuditID: "aud_2", Action: "key.revoked", HostID: "host_b"})
	page := s.page("/ui/audit?action=key")
	for _, want := range []string{">Host</th>", "host_b", "before=7"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
}
