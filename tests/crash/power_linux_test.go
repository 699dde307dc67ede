package crash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/loopdisk"
)

// TestPowerCut is TestKill with more than the process gone: what had not reached the
// device is lost with it. What lies beside the store stays whole, too:
// the installed module, the stored secret, the installation's id.
func TestPowerCut(t *testing.T) {
	if !loopdisk.Inside(t) {
		return
	}
	c := campaign.New(t, "power cut, a run")
	adopt(t)
	d := loopdisk.New(t)
	w := newWitness(program{t: t, data: filepath.Join(d.Dir, "data")})
	w.undisturbed(pagesPerRun)
	w.check()
	for i := range c.Length(2, 1) {
		// Just before the cut: only what was synced is there afterwards.
		value := strings.Repeat("v", 1+i)
		w.p.keep(value)
		if i%2 == 1 { // and sometimes cut right after that
			d.Cut()
			d.Restart()
		}
		l := w.start(w.committed + pagesPerRun)
		m := anyMoment(c.Rand)
		l.await(m.events)
		<-time.After(m.after)
		loopdisk.Stop(t, l.cmd.Process)
		d.Cut()
		announced, _ := l.killed(moment{})
		orphansGone(t)
		d.Restart()
		c.Cycle()
		w.saw(announced)
		w.check()
		w.p.kept(c, value)
		c.Checked(len(w.acked) + 3)
		if t.Failed() {
			return
		}
	}
	w.complete()
}

// keep stores a secret and installs the connector.
func (p program) keep(value string) {
	p.t.Helper()
	set := p.command("secret", "set", "pages", "token", "--file", "-")
	set.Stdin = strings.NewReader(value)
	if o := p.finish(set); o.code != 0 {
		p.t.Fatalf("secret set: %s", o.errs)
	}
	if o := p.do("install", built.pages); o.code != 0 {
		p.t.Fatalf("install: %s", o.errs)
	}
}

// kept looks for what keep acknowledged.
func (p program) kept(c *campaign.Campaign, value string) {
	p.t.Helper()
	if got, err := secret(p.data, "pages", "token"); err != nil || got != value {
		c.Lost(1, "the secret was set to %d bytes and has %d: %v", len(value), len(got), err)
	}
	if o := p.do("inspect", "pages", "--json"); o.code != 0 {
		c.Lost(1, "the connector was installed, and now: %s%s", o.out, o.errs)
	}
	if id, err := os.ReadFile(filepath.Join(p.data, "host-id")); err != nil || len(id) != len("host_0123456789abcdef") {
		c.Lost(1, "the installation has the id %q: %v", id, err)
	}
}
