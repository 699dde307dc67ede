package chromium_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// What a look and a click cost. The bounds are far above what is
// measured on a quiet machine; they catch a step that began to wait for something.
func TestCost(t *testing.T) {
	tab, ctx := open(t, "huge.html?1600")
	measure := func(name string, n int, limit time.Duration, do func() error) {
		var took []time.Duration
		for range n {
			begun := time.Now()
			if err := do(); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		t.Logf("%s: p50 %v, p90 %v", name, took[n/2], took[n*9/10])
		if took[n/2] > limit {
			t.Errorf("%s takes %v", name, took[n/2])
		}
	}
	q := page.Query{Selectors: []page.Selector{{Name: "row 7"}}}
	measure("read by name, 1,600 nodes", 40, 200*time.Millisecond, func() error { _, err := tab.Read(ctx, q); return err })
	n := look(t, ctx, tab, ".row a")[0]
	var at page.Point
	measure("ready", 40, 200*time.Millisecond, func() error {
		r, err := tab.Ready(ctx, n.Ref, page.Point{X: 0.5, Y: 0.5})
		at = r.Point
		return err
	})
	measure("click", 40, 200*time.Millisecond, func() error {
		_, err := tab.Click(ctx, page.Click{At: at})
		return err
	})
	measure("read, ready and click", 40, 400*time.Millisecond, func() error {
		if _, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: ".row a"}}, Limit: 50}); err != nil {
			return err
		}
		if _, err := tab.Ready(ctx, n.Ref, page.Point{X: 0.5, Y: 0.5}); err != nil {
			return err
		}
		_, err := tab.Click(ctx, page.Click{At: at})
		return err
	})
}
