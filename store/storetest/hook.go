package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/store"
)

// perStreamer is what a driver offers whose runs submit one commit per stream.
type perStreamer interface{ PerStream() bool }

func exerciseHook(t *testing.T, d Driver) {
	for _, perStream := range []bool{false, true} {
		t.Run(fmt.Sprintf("the cursor of one stream fails, per stream %v", perStream), func(t *testing.T) {
			b := &bench{t: t, d: d, s: d.OpenFailing(t, "u", perStream)}
			defer b.close()
			equal(t, "per stream", b.s.(perStreamer).PerStream(), perStream)
			l := b.run("a")
			var commits []*store.Commit
			for _, s := range []store.Stream{"s", "u", "v"} {
				c := &store.Commit{Lease: l, Advance: []store.State{state(l, s, `1`)},
					Events: []store.Event{b.event(l, "run.state_advanced")}}
				if perStream || len(commits) == 0 {
					commits = append(commits, c)
					continue
				}
				commits[0].Advance = append(commits[0].Advance, c.Advance...)
			}
			committed := 0
			for _, c := range commits {
				_, err := b.commit(c)
				if err == nil {
					committed++
					continue
				}
				var refused *store.StateError
				if !errors.As(err, &refused) || refused.Stream != "u" {
					t.Fatalf("commit: %v", err)
				}
				break
			}
			want := map[bool]int{false: 0, true: 1}[perStream]
			states, err := b.s.States(t.Context(), "a", "")
			b.must(err)
			equal(t, "committed cursors", []int{committed, len(states)}, []int{want, want})
			b.end(l) // the failure is recorded in a commit of its own
		})
	}
}
