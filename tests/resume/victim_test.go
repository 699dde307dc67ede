//go:build unix

package resume

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/campaign"
)

// A victim is one host, or several that share a store, which are struck.
type victim struct {
	t       *testing.T
	c       *campaign.Campaign
	members []*member
	shared  string // directory of the store that they share; "" for one host
	witness *witness
	done    []func(store.Store) // checks of what is stored
}

// A member is a host of a victim. It begins again after it ended.
type member struct {
	url, dir string
	id       string
	p        *process // nil while it is not there
	frozen   bool     // stopped with SIGSTOP
	drained  bool
}

func newVictim(t *testing.T, campaigns string) *victim {
	t.Helper()
	v := &victim{t: t, c: campaign.New(t, campaigns), witness: newWitness(t)}
	v.witness.slow = true
	return v
}

// join begins a host, and has another one admit it to the vault that they share.
func (v *victim) join(h *member) {
	var st state
	for ok := false; !ok; st, ok = h.p.try(command{Code: true}) {
		if h.p != nil {
			v.removed(h)
		}
		v.begin(h)
	}
	h.id = st.Host
	if len(v.members) > 0 {
		code, _ := json.Marshal(st.Code)
		v.must(command{Admit: h.id, Value: code})
	}
	v.members = append(v.members, h)
}

// begin begins a host. The runs of every other one sleep within a second when they wait.
func (v *victim) begin(h *member) {
	var env []string
	if v.c.IntN(2) == 0 {
		env = []string{sleeps + "=1"}
	}
	h.p, h.drained = begin(v.t, h.url, env...), false
}

// pause waits for a random time.
func (v *victim) pause(most time.Duration) { <-time.After(time.Duration(v.c.Int64N(int64(most)))) }

// pick returns a host that can be asked. Where there is none, one begins or goes on.
func (v *victim) pick() *member {
	able := slices.DeleteFunc(slices.Clone(v.members), func(h *member) bool { return h.p == nil || h.frozen })
	if len(able) > 0 {
		return able[v.c.IntN(len(able))]
	}
	h := v.members[v.c.IntN(len(v.members))]
	if h.p == nil {
		v.begin(h)
	} else {
		v.thaw(h)
	}
	return h
}

// do has a host do something, or another one where it ends meanwhile because others have removed it: a busy machine
// may have kept it from being heard of.
func (v *victim) do(c command) state {
	v.t.Helper()
	for {
		h := v.pick()
		if st, ok := h.p.try(c); ok {
			return st
		}
		v.removed(h)
	}
}

// must is do, which succeeds.
func (v *victim) must(c command) state {
	v.t.Helper()
	st := v.do(c)
	if st.Err != "" {
		v.t.Fatalf("%+v: %s", c, st.Err)
	}
	return st
}

// removed waits for the end of a host that others have removed.
func (v *victim) removed(h *member) {
	v.t.Helper()
	if code, errs := h.p.wait(); code != exitRemoved {
		v.t.Fatalf("a host ended with %d\n%s", code, errs)
	}
	h.p = nil
}

// strikes are what hosts are struck with.
var strikes = map[string]func(v *victim, h *member){
	"kill": func(_ *victim, h *member) {
		h.p.kill()
		h.p = nil
	},
	"stop": func(v *victim, h *member) {
		h.p.in.Close()
		if code, errs := h.p.wait(); code != 0 && code != exitRemoved {
			v.t.Fatalf("stop: %d\n%s", code, errs)
		}
		h.p = nil
	},
	"drain": func(v *victim, h *member) { v.drain(h, true) },
	"freeze": func(_ *victim, h *member) {
		_ = h.p.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended
		h.frozen = true
	},
}

// ways are the strikes at the hosts of one crowd, in their order.
func (v *victim) ways() []string {
	ways := []string{"kill", "kill", "kill", "stop"}
	if len(v.members) > 1 {
		ways = append(ways, slices.Sorted(maps.Keys(strikes))...)
	}
	v.c.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
	return ways
}

// strike strikes one of the hosts.
func (v *victim) strike(way string) {
	h := v.pick()
	if st, ok := h.p.try(command{Holds: true}); ok {
		v.c.Struck(st.Holds)
	}
	strikes[way](v, h)
	v.c.Cycle()
	v.search(h.dir)
}

// mend has some of the hosts that were struck begin again, or go on. At least one is there then.
func (v *victim) mend() {
	for _, h := range v.members {
		switch {
		case h.p == nil:
			if v.c.IntN(2) == 0 {
				v.begin(h)
			}
		case h.frozen && v.gone(h):
			v.thaw(h)
			v.removed(h)
		case h.frozen:
			if v.c.IntN(6) == 0 {
				v.thaw(h)
			}
		case h.drained:
			if v.c.IntN(2) == 0 {
				v.drain(h, false)
			}
		}
	}
	v.pick()
}

// gone reports whether others have removed a host.
func (v *victim) gone(h *member) bool {
	return !slices.Contains(v.must(command{Members: true}).Members, h.id)
}

// thaw has a host go on, which ends where others have removed it.
func (v *victim) thaw(h *member) {
	h.frozen = false
	_ = h.p.cmd.Process.Signal(syscall.SIGCONT) // it may have ended
}

// drain begins or ends the draining of a host, which others may have removed.
func (v *victim) drain(h *member, on bool) {
	st := v.do(command{Drain: h.id, On: on})
	if h.drained = on; st.Err != "" && h.p != nil {
		v.removed(h)
	}
}

// restore has all hosts be there.
func (v *victim) restore() {
	for _, h := range v.members {
		if h.p == nil {
			v.begin(h)
		}
	}
	for _, h := range v.members {
		for h.frozen && !v.gone(h) {
			v.pause(time.Second)
		}
		if h.frozen {
			v.thaw(h)
			v.removed(h)
			v.begin(h)
		}
		if h.drained {
			v.drain(h, false)
		}
	}
}

// stop stops all hosts.
func (v *victim) stop() {
	for _, h := range v.members {
		strikes["stop"](v, h)
	}
}

// search looks for secrets in every file of a directory.
func (v *victim) search(dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a host that lives has deleted it
			return nil
		}
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "cache") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, secret := range []string{plantedCookie, plantedCode, plantedBody} {
			if bytes.Contains(b, []byte(secret)) {
				v.c.Torn("%s has %s", path, secret)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
}
