package run

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Times do not decrease, within a commit and from one to the next, also when
// the clock does.
func TestEventsInOrder(t *testing.T) {
	at := func(ms int64) store.Event { return store.Event{OccurredAt: time.UnixMilli(ms)} }
	j := &journal{}
	for _, c := range []struct{ commit, want []int64 }{
		{[]int64{10, 12}, []int64{10, 12}},
		{[]int64{15, 14, 16}, []int64{15, 15, 16}},
		{[]int64{3, 20}, []int64{16, 20}},
		{nil, nil},
	} {
		var events []store.Event
		for _, ms := range c.commit {
			events = append(events, at(ms))
		}
		j.inOrder(events)
		for i, e := range events {
			if got := e.OccurredAt.UnixMilli(); got != c.want[i] {
				t.Errorf("%v: %d is at %d, want %d", c.commit, i, got, c.want[i])
			}
		}
	}
}
