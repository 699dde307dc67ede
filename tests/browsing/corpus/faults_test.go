//go:build linux

package corpus_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
	"github.com/sluicehost/sluice/tests/campaign"
)

// TestBrokenClicks clicks on something that posts, while the browser, the page's
// process or the way to the server breaks at a random moment. Nothing is posted twice,
// and every reply says what became of the click.
func TestBrokenClicks(t *testing.T) {
	t.Parallel()
	c := campaign.New(t, "faults under a click")
	data, s := browsing.Dir(t), newSite(t)
	host := browsing.Host(t, browser.Options{ActionsPerMinute: 1e6, Data: data})
	var b *bench
	outcomes := map[string]int{}
	for i := range c.Length(8, 1) {
		if b == nil {
			b = &bench{open(t, s, host,
				func(o *browser.SessionOptions) { o.Connection, o.Name, o.Connector = "faults", "faults", "corpus" }), s,
				fmt.Sprintf("fault%d-", i), 0}
		}
		how := pick(c, "lost", "lost", "lost", "kill", "renderer", "none")
		answer := pick(c, "post", "fails")
		if how == "lost" {
			answer = "lost"
		}
		path := fmt.Sprintf("/%s/KEY?after=%dms", answer, c.IntN(200))
		body := pick(c, `<form method=post action="`+path+`"><button>Save</button></form>`,
			`<button onclick="fetch('`+path+`',{method:'POST'}).then(r=>r.ok&&say('Saved'))">Save</button>`)
		key := b.visit(t, body)
		timer := time.AfterFunc(time.Duration(c.IntN(500))*time.Millisecond, func() { strike(t, how, data) })
		r := b.Call(b.request(t, also(`"verify":{"window_ms":500},"recovery":{"max_recovery_attempts":1}`), key))
		timer.Stop()
		c.Cycle()
		c.Checked(1)
		judged(t, r)
		posted, _ := s.told(key)["posted"].(int)
		outcomes[how+": "+verdict(r)]++
		switch {
		case posted > 1:
			c.Torn("posted %d times under %s: %s", posted, how, r.Raw)
		case r.Success && (posted != 1 || answer != "post"):
			c.Torn("verified under %s, posted %d, answer %s: %s", how, posted, answer, r.Raw)
		case r.Errno != abi.OK && r.Refusal == "":
			c.Torn("a refusal without a code under %s: %s", how, r.Raw)
		case !r.Success:
			c.Refused()
		}
		if how == "kill" || how == "renderer" {
			b.End()
			b = nil
		}
	}
	t.Logf("outcomes: %v", outcomes)
}

// strike breaks something of the browser that has its profile below data.
func strike(t *testing.T, how, data string) {
	if how != "kill" && how != "renderer" {
		return
	}
	for _, pid := range victims(data, how == "renderer") {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Errorf("kill %d: %v", pid, err)
		}
	}
}

// victims returns the browser that has its profile below data, or the processes of
// pages among its descendants.
func victims(data string, renderers bool) (pids []int) {
	parent, pages := map[int]int{}, map[int]bool{}
	main := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		line, _ := os.ReadFile(f)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "stat"))
		if _, rest, ok := strings.Cut(string(stat), ") "); ok {
			if fields := strings.Fields(rest); len(fields) > 1 {
				parent[pid], _ = strconv.Atoi(fields[1])
			}
		}
		typed := bytes.Contains(line, []byte("--type="))
		pages[pid] = bytes.Contains(line, []byte("--type=renderer"))
		if !typed && bytes.Contains(line, []byte("--user-data-dir="+data)) {
			main = pid
		}
	}
	if main == 0 || !renderers {
		if main != 0 {
			pids = append(pids, main)
		}
		return pids
	}
	for pid := range pages {
		for up := pid; pages[pid] && up > 1; up = parent[up] {
			if up == main {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
