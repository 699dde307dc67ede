package view_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/view"
)

// One has control; it is taken when the guest's verb is over; others wait until it is
// free.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		r.surface.busy = make(chan struct{})
		a, hello := r.enter(view.Mint{})
		if hello["lease"] != "coming" {
			t.Errorf("%v", hello)
		}
		a.say(object{"type": "mouse", "action": "click", "x": 1, "y": 1})
		if e := a.heard(t, "error"); e["code"] != "not_controlling" {
			t.Errorf("%v", e)
		}
		b, hello := r.enter(view.Mint{Owner: "o2"})
		if hello["lease"] != "other" {
			t.Errorf("%v", hello)
		}
		close(r.surface.busy)
		s := a.heard(t, "state")
		for s["lease"] != "yours" {
			s = a.heard(t, "state")
		}
		if s["lease_until"] == nil {
			t.Errorf("%v", s)
		}
		synctest.Wait()
		b.say(object{"type": "take"})
		b.heard(t, "error")
		a.say(object{"type": "viewport", "width": 390, "height": 844, "mobile": true, "deviceScaleFactor": 3})
		a.say(object{"type": "release"})
		synctest.Wait()
		for s := a.heard(t, "state"); s["lease"] != "free"; s = a.heard(t, "state") {
		}
		if v := r.screen.Viewport(); v.Width != 800 || v.Mobile {
			t.Errorf("the guest's viewport is %+v", v)
		}
		if taken, released := r.surface.leases(); taken != 1 || released != 1 {
			t.Errorf("%d, %d", taken, released)
		}
		b.say(object{"type": "take"})
		for s := b.heard(t, "state"); s["lease"] != "yours"; s = b.heard(t, "state") {
		}
	})
}

// It ends after ten minutes without input, after an hour in all, and half a
// minute after the connection is gone.
func TestLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		released := func() int {
			synctest.Wait()
			_, n := r.surface.leases()
			return n
		}
		c := r.control(view.Mint{})
		time.Sleep(9 * time.Minute)
		c.say(object{"type": "text", "text": "x"})
		time.Sleep(9*time.Minute + 59*time.Second)
		if released() != 0 {
			t.Fatal("input does not prolong it")
		}
		time.Sleep(2 * time.Second)
		if released() != 1 {
			t.Fatal("it does not end without input")
		}
		c.say(object{"type": "take"})
		synctest.Wait()
		for range 61 {
			c.say(object{"type": "text", "text": "x"})
			time.Sleep(time.Minute)
		}
		if released() != 2 {
			t.Fatal("it has no end")
		}
		c.say(object{"type": "take"})
		synctest.Wait()
		c.Close(1006, "")
		time.Sleep(29 * time.Second)
		if released() != 2 {
			t.Fatal("a short drop ends it")
		}
		time.Sleep(2 * time.Second)
		if released() != 3 {
			t.Fatal("a drop does not end it")
		}
	})
}

// A lease that never came, because the interaction was over before the guest's verb
// was, is given back.
func TestLeaseGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		r.surface.busy = make(chan struct{})
		r.enter(view.Mint{})
		r.run.Answered("i1", view.ReasonEnded)
		synctest.Wait()
		if taken, released := r.surface.leases(); taken != released {
			t.Errorf("%d, %d", taken, released)
		}
		r.run.Asked("i2", "otp")
		close(r.surface.busy)
		r.control(view.Mint{})
	})
}

// Once a lease has ended nothing of its owner reaches the page, however much
// was on its way; Settled waits for that.
func TestNoInputAfterRelease(t *testing.T) {
	r := newRoom(t)
	defer r.views.Close()
	for round := range 50 {
		id := fmt.Sprint("round", round)
		r.run.Asked(id, "manual_action")
		c := r.control(view.Mint{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				c.say(object{"type": "text", "text": "x"})
			}
		})
		r.run.Answered(id, view.ReasonEnded)
		if err := r.run.Settled(context.Background()); err != nil {
			t.Fatal(err)
		}
		if taken, released := r.surface.leases(); taken != released {
			t.Fatalf("settled, with %d taken and %d released", taken, released)
		}
		r.screen.happened()
		wg.Wait()
		<-c.closed
		if did := r.screen.happened(); len(did) > 0 {
			t.Fatalf("after the end: %v", did)
		}
	}
}
