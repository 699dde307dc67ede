package chromium_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// Merged per host, port and verdict every five seconds.
func TestMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		m := chromium.NewMerge(h.note)
		for range 1000 {
			m.Add("b.example", 443, "host_denied")
		}
		m.Add("a.example", 443, "host_denied")
		m.Add("b.example", 80, "host_denied")
		time.Sleep(4999 * time.Millisecond)
		synctest.Wait()
		if told := h.all(); len(told) != 0 {
			t.Errorf("too early: %+v", told)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		m.Add("b.example", 443, "host_denied")
		m.Close()
		m.Add("c.example", 443, "host_denied")
		time.Sleep(time.Minute)
		want := []chromium.Denial{{"a.example", 443, "host_denied", 1}, {"b.example", 80, "host_denied", 1}, {"b.example", 443, "host_denied", 1000}, {"b.example", 443, "host_denied", 1}}
		if diff := cmp.Diff(want, h.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// 200 lines in a run, however many hosts a page makes up.
func TestMostLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		m := chromium.NewMerge(h.note)
		for round := range 10 {
			for i := range 1000 {
				m.Add(fmt.Sprintf("%d-%d.example", round%2, i%50), 443, "host_denied")
				m.Add(fmt.Sprintf("r%d-%d.example", round, i), 443, "host_denied")
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
		}
		m.Close()
		if v, old := m.Last("r9-999.example", 443), m.Last("r0-0.example", 443); v != "host_denied" || old != "" {
			t.Errorf("the newest is %q, the oldest %q", v, old)
		}
		if lines := len(h.all()); lines != 200 {
			t.Errorf("%d lines", lines)
		}
	})
}
