package view_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
)

// A contested surface is one that a connector works as long as no owner has it, and
// that knows who does.
type contested struct {
	*surface
	t    *testing.T
	page sync.Mutex // held by whoever works the page

	mu      sync.Mutex // guards what follows
	held    bool
	refused int
	acted   int
}

func (c *contested) Taken(ctx context.Context) error {
	c.page.Lock() // the verb that runs ends first
	defer c.page.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.t.Error("two have control")
	}
	c.held = true
	return c.surface.Taken(ctx)
}

func (c *contested) Released() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	c.surface.Released()
}

func (c *contested) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// verb is one of the connector's.
func (c *contested) verb() {
	c.page.Lock()
	defer c.page.Unlock()
	held := c.isHeld()
	time.Sleep(time.Millisecond) // it works the page
	c.mu.Lock()
	defer c.mu.Unlock()
	if held {
		c.refused++
		return
	}
	c.acted++
	if c.held {
		c.t.Error("control began within a verb")
	}
}

// A guarded screen takes input only while somebody has control.
type guarded struct {
	*screen
	c *contested
}

func (g *guarded) Input(ctx context.Context, in page.Input) error {
	if !g.c.isHeld() {
		g.c.t.Error("input without control")
	}
	return g.screen.Input(ctx, in)
}

// Three viewers of two owners take, use, give back and drop control while the connector
// works, each as fast as it can: never do two have it, never does a verb run beside it,
// and no input comes without it.
func TestLeaseRaces(t *testing.T) {
	r := &room{t: t, views: view.New(), screen: newScreen(), surface: &surface{}}
	defer r.views.Close()
	c := &contested{surface: r.surface, t: t}
	r.run = r.views.Begin("run_1", c, r.event)
	r.run.Up(&guarded{r.screen, c})
	r.run.Asked("i1", "manual_action")

	var viewers, connector sync.WaitGroup
	over := make(chan struct{})
	connector.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				c.verb()
			}
		}
	})
	for i := range 3 {
		viewers.Go(func() {
			for range 8 {
				q := view.Mint{Owner: fmt.Sprint("o", i%2)}
				m, err := r.views.Mint(fill(q))
				if err != nil {
					t.Error(err)
					return
				}
				v := r.dial(fill(q).Owner, "run_1", object{"type": "auth", "token": m.Token})
				for n := range 40 {
					v.say(object{"type": []string{"take", "text", "text", "release"}[n%4], "text": "x"})
					if n%8 == i {
						time.Sleep(time.Millisecond)
					}
				}
				v.Close(view.CloseDone, "dropped")
			}
		})
	}
	viewers.Wait()
	close(over)
	connector.Wait()
	r.run.Answered("i1", view.ReasonEnded)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if taken, released := r.surface.leases(); taken == released && taken > 0 && !c.isHeld() {
			t.Logf("%d leases, %d verbs, %d of them refused", taken, c.acted+c.refused, c.refused)
			return
		}
		if time.Now().After(end) {
			taken, released := r.surface.leases()
			t.Fatalf("%d leases were taken, %d released", taken, released)
		}
	}
}
