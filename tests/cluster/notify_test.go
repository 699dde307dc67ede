//go:build unix

package cluster

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// After a restart of the server no host says that something between them swallows notifications, and they arrive.
func TestNotificationsAfterRestart(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	c := start(t, server, "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	if err := errors.Join(server.Crash(), server.Start()); err != nil {
		t.Fatal(err)
	}
	seen := func() (all []time.Time) {
		var page struct{ Data []host.Member }
		if _, err := a.Do(soon(t), "GET", "/v1/hosts", nil, &page); err == nil {
			for _, m := range page.Data {
				all = append(all, m.SeenAt)
			}
		}
		return all
	}
	var back []time.Time
	until(t, "both are back", func() bool { back = seen(); return len(back) == 2 })
	until(t, "both go on for two leases", func() bool {
		now := seen()
		return len(now) == 2 && now[0].Sub(back[0]) > 2*c.lease && now[1].Sub(back[1]) > 2*c.lease
	})
	for _, m := range []*member{a, b} {
		if text, err := os.ReadFile(m.said.Name()); err != nil || strings.Contains(string(text), "notifications_lost") {
			t.Errorf("a host whose server was started again says that notifications are lost: %v\n%s", err, text)
		}
	}
}

// Something between a host and the server takes LISTEN and swallows what comes of it: metrics, log,
// warnings and sluice doctor say that this host polls, and say so no more once notifications arrive.
func TestPolling(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	metric := func() string {
		res, err := a.HTTP.Get(a.Base + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, v, _ := strings.Cut(string(text), "\nsluice_store_polling ")
		v, _, _ = strings.Cut(v, "\n")
		return v
	}
	warned := func() bool {
		var info struct{ Warnings []host.Warning }
		a.do("GET", "/v1/system", nil, &info)
		for _, w := range info.Warnings {
			if w.Code == host.WarningPolling {
				return true
			}
		}
		return false
	}
	doctor := func() bool {
		cmd := exec.Command(a.cmd.Path, "doctor", "--json", "--store", a.cmd.Args[a.flag("--store")])
		cmd.Env = a.cmd.Env
		out, err := cmd.Output() // it ends with 6 where the machine lacks something
		var findings []app.Finding
		if wrong := json.Unmarshal(out, &findings); wrong != nil {
			t.Fatalf("%v, %v: %s", wrong, err, out)
		}
		for _, f := range findings {
			if f.Check == host.WarningPolling {
				return f.State == app.StateWeak
			}
		}
		return false
	}
	until(t, "notifications arrive", func() bool { return metric() == "0" && !warned() })
	c.proxies["a"].Mute(true)
	until(t, "the host polls", func() bool { return metric() == "1" && warned() })
	if !doctor() {
		t.Error("sluice doctor does not say that the host polls")
	}
	a.install()
	a.connect("one", step{"do": "emit", "n": 1})
	a.wait(b.begin("one"), served.Over) // which nothing tells it
	c.proxies["a"].Mute(false)
	until(t, "notifications arrive again", func() bool { return metric() == "0" && !warned() })
	if doctor() {
		t.Error("sluice doctor says that the host still polls")
	}
	said, err := os.ReadFile(a.said.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), "notifications_lost") {
		t.Error("the log does not say that the host polls")
	}
}

// flag is where the value of a flag is among the arguments of a host.
func (m *member) flag(name string) int {
	for i, a := range m.cmd.Args {
		if a == name {
			return i + 1
		}
	}
	m.t.Fatalf("the host was started without %s", name)
	return 0
}
