package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/campaign"
)

// A grantWitness remembers what an owner was told about a grant.
type grantWitness struct {
	p     program
	c     *campaign.Campaign
	runs  map[string]string // how they ended, by id
	until int               // page that the last run was to come to
}

// status returns the status of the connection's grant.
func (w *grantWitness) status() string {
	w.p.t.Helper()
	type connection struct {
		Grant struct {
			Status string `json:"status"`
		} `json:"grant"`
	}
	return one[[]connection](w.p, "connections")[0].Grant.Status
}

// newRuns returns how many runs since the last call succeeded, and checks that no older
// run has changed.
func (w *grantWitness) newRuns() (succeeded int) {
	w.p.t.Helper()
	for _, r := range one[[]runLine](w.p, "runs", "pages", "--limit", "100000") {
		was, known := w.runs[r.ID]
		if known && was != r.ending() {
			w.c.Torn("run %s was %s and is %s", r.ID, was, r.ending())
		}
		if !known && r.Status == "succeeded" {
			succeeded++
		}
		w.runs[r.ID] = r.ending()
	}
	return succeeded
}

// TestKillGrant: a single-use grant allows one success, however often the host is
// killed while the grant is given, used or revoked. It is consumed exactly when a run
// completed.
func TestKillGrant(t *testing.T) {
	c := campaign.New(t, "kill -9, grants")
	adopt(t)
	w := &grantWitness{p: program{t: t, data: filepath.Join(t.TempDir(), "data")}, c: c, runs: map[string]string{}}
	if o := w.p.do("install", built.pages); o.code != 0 {
		t.Fatal(o.errs)
	}
	for total, done := c.Length(3, 1), 0; done < total && !t.Failed(); {
		// Granting: an acknowledged grant is there; one whose command was killed may be.
		if killAt(t, w.p.command("grant", "pages", "--single-use"), time.Duration(10+c.IntN(300))*time.Millisecond) {
			c.Checked(1)
			if s := w.status(); s != "active" {
				c.Lost(1, "a grant was given and is %s", s)
			}
		} else {
			done++
			c.Cycle()
			if o := w.p.do("grant", "pages", "--single-use"); o.code != 0 {
				t.Fatal(o.errs)
			}
		}
		w.newRuns()
		done += w.use()
		if c.IntN(2) == 0 {
			done += w.takeBack()
		}
	}
}

// use starts runs, most of which are killed, until the grant is consumed.
func (w *grantWitness) use() (killed int) {
	t := w.p.t
	t.Helper()
	successes := 0
	for range 4 {
		w.until += 2
		cmd := w.p.command("run", "pages", "--json", "--no-interactive", "--config", fmt.Sprintf(`{"until":%d}`, w.until))
		_, dead := w.p.start(cmd).killed(moment{events: 1 + w.c.IntN(24),
			after: time.Duration(w.c.IntN(4000)) * time.Microsecond})
		orphansGone(t)
		if dead {
			killed++
			w.c.Cycle()
		}
		successes += w.newRuns()
		w.c.Checked(1)
		status := w.status()
		switch {
		case !dead && successes == 0:
			w.c.Lost(1, "a run said that it succeeded and is not listed so")
		case successes > 1:
			w.c.Torn("a grant for one run gave %d", successes)
		case (status == "consumed") != (successes == 1):
			w.c.Torn("%d runs succeeded, and the grant is %s", successes, status)
		}
		if t.Failed() || status == "consumed" {
			break
		}
	}
	if successes == 1 {
		if o := w.p.do("run", "pages", "--json", "--no-interactive"); o.code != 4 || w.newRuns() != 0 {
			w.c.Torn("a consumed grant let a run start: code %d, %s", o.code, o.out)
		}
	}
	return killed
}

// takeBack revokes the grant: once that is acknowledged, no run may start.
func (w *grantWitness) takeBack() (killed int) {
	t := w.p.t
	t.Helper()
	if !killAt(t, w.p.command("revoke", "pages"), time.Duration(20+w.c.IntN(300))*time.Millisecond) {
		w.c.Cycle()
		return 1
	}
	w.c.Checked(1)
	if s := w.status(); s != "revoked" {
		w.c.Lost(1, "a grant was revoked and is %s", s)
	}
	if o := w.p.do("run", "pages", "--json", "--no-interactive"); o.code != 4 {
		w.c.Torn("a revoked grant let a run start: code %d, %s", o.code, o.out)
	}
	return 0
}

// TestKillInstall: a connector that is listed can be used, however often its
// installation was killed.
func TestKillInstall(t *testing.T) {
	c := campaign.New(t, "kill -9, installing")
	adopt(t)
	p := program{t: t, data: filepath.Join(t.TempDir(), "data")}
	for range c.Length(2, 1) {
		said := killAt(t, p.command("install", built.pages), time.Duration(20+c.IntN(500))*time.Millisecond)
		if !said {
			c.Cycle()
		}
		c.Checked(1)
		_, err := os.Stat(filepath.Join(p.data, "db")) // killed before there is a store, nothing is listed
		listed := err == nil && len(one[[]struct{}](p, "connectors")) == 1
		if said && !listed {
			c.Lost(1, "the connector was installed and is not listed")
		}
		if !listed {
			continue
		}
		if o := p.do("inspect", "pages", "--json"); o.code != 0 {
			c.Torn("the connector is listed, and: %s%s", o.out, o.errs)
		}
		if o := p.do("uninstall", "pages"); o.code != 0 {
			t.Fatalf("uninstall: %s", o.errs)
		}
	}
}
