package view_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image/color"
	"image/jpeg"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
)

func sequence(frame []byte) uint32 { return binary.BigEndian.Uint32(frame[1:]) }

// shade is the grey of a picture at a place, in its own pixels.
func shade(t *testing.T, frame []byte, x, y int) uint8 {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(frame[view.HeaderSize:]))
	if err != nil {
		t.Fatal(err)
	}
	return color.GrayModel.Convert(m.At(x, y)).(color.Gray).Y
}

func near(a, b uint8) bool { return max(a, b)-min(a, b) < 6 }

// The header of a picture, byte by byte.
func TestHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		f := c.frame(t)
		at := time.UnixMilli(int64(binary.BigEndian.Uint64(f[5:])))
		if f[0] != 1 || sequence(f) == 0 || time.Since(at) > time.Second || binary.BigEndian.Uint16(f[13:]) != 800 ||
			binary.BigEndian.Uint16(f[15:]) != 600 || math.Float32frombits(binary.BigEndian.Uint32(f[17:])) != 0.5 ||
			!bytes.HasPrefix(f[21:], []byte{0xff, 0xd8}) {
			t.Errorf("% x", f[:23])
		}
	})
}

// Whoever comes sees a picture though the page is still; the newest frame wins, and
// none is sent before the one before it was acknowledged.
func TestNewestWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		first := c.frame(t)
		for i := range 100 {
			time.Sleep(20 * time.Millisecond)
			r.screen.frame(uint8(i))
		}
		synctest.Wait()
		if len(c.frames) != 0 {
			t.Fatal("a picture was sent before the one before it was acknowledged")
		}
		c.say(object{"type": "ack", "seq": sequence(first) + 5}) // not the one
		synctest.Wait()
		if len(c.frames) != 0 {
			t.Fatal("any number acknowledges")
		}
		c.say(object{"type": "ack", "seq": sequence(first)})
		f := c.frame(t)
		if got := shade(t, f, 10, 10); !near(got, 99) || sequence(f) <= sequence(first) {
			t.Errorf("shade %d, number %d", got, sequence(f))
		}
	})
}

// The rates, the qualities, and the still after a rest, which does not ask for the next
// one.
func TestRates(t *testing.T) {
	for mode, want := range map[string]struct {
		rate float64
		cast page.Cast
	}{view.ModeControl: {30, page.Cast{Quality: 60, EveryN: 1}}, view.ModeView: {10, page.Cast{Quality: 50, EveryN: 1}}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t)
			defer r.views.Close()
			c, _ := r.enter(view.Mint{Mode: mode})
			synctest.Wait()
			r.screen.mu.Lock()
			cast := r.screen.cast
			r.screen.mu.Unlock()
			if cast != want.cast {
				t.Errorf("%s: %+v", mode, cast)
			}
			got := 0
			for i := range 600 { // ten seconds
				time.Sleep(time.Second / 60)
				r.screen.frame(uint8(i))
				synctest.Wait()
				select {
				case f := <-c.frames:
					got++
					c.say(object{"type": "ack", "seq": sequence(f)})
					synctest.Wait()
				default:
				}
			}
			if rate := float64(got) / 10; math.Abs(rate-want.rate) > want.rate/10 {
				t.Errorf("%s: %v pictures a second", mode, rate)
			}
			r.screen.mu.Lock()
			before := r.screen.stills
			r.screen.mu.Unlock()
			time.Sleep(time.Second)
			synctest.Wait()
			r.screen.mu.Lock()
			stills := r.screen.stills - before
			r.screen.mu.Unlock()
			if stills != 1 && mode == view.ModeControl {
				t.Errorf("%d stills after a rest", stills)
			}
			r.screen.frame(uint8(599 % 256)) // the same page again
			time.Sleep(time.Second)
			synctest.Wait()
			r.screen.mu.Lock()
			defer r.screen.mu.Unlock()
			if mode == view.ModeControl && r.screen.stills-before != 1 {
				t.Error("a frame without a change asked for a still")
			}
		})
	}
}

// The cast runs while somebody looks, at what they need, and not longer.
func TestCastLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		casting := func() page.Cast {
			synctest.Wait()
			r.screen.mu.Lock()
			defer r.screen.mu.Unlock()
			if r.screen.sent == nil {
				return page.Cast{}
			}
			return r.screen.cast
		}
		if casting() != (page.Cast{}) {
			t.Error("cast without viewers")
		}
		watcher, _ := r.enter(view.Mint{Mode: view.ModeView, Owner: "o2"})
		if c := casting(); c.Quality != 50 {
			t.Errorf("%+v", c)
		}
		holder := r.control(view.Mint{})
		if c := casting(); c.Quality != 60 || c.EveryN != 1 {
			t.Errorf("%+v", c)
		}
		holder.say(object{"type": "release"})
		synctest.Wait()
		if c := casting(); c.Quality != 50 {
			t.Errorf("%+v", c)
		}
		holder.say(object{"type": "bye"})
		watcher.say(object{"type": "bye"})
		if c := casting(); c != (page.Cast{}) {
			t.Errorf("%+v", c)
		}
		// Who wants no motion gets stills.
		m := r.mint(view.Mint{Mode: view.ModeControl})
		still := r.dial("o1", "run_1", object{"type": "auth", "token": m.Token, "stills": true})
		still.heard(t, "hello")
		if c := casting(); c != (page.Cast{}) {
			t.Errorf("%+v", c)
		}
		f := still.frame(t)
		still.say(object{"type": "ack", "seq": sequence(f)})
		r.screen.set(func(s *screen) { s.color.Y = 7 })
		if f := still.frame(t); !near(shade(t, f, 1, 1), 7) {
			t.Error("the still is old")
		}
	})
}

// Those who only watch do not see what is secret, in any picture, and get none when the
// host cannot tell where it is.
func TestCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		r.screen.secrets = []page.Box{{X: 100, Y: 100, W: 200, H: 40}}
		watcher, _ := r.enter(view.Mint{Mode: view.ModeView, Owner: "o2"})
		holder := r.control(view.Mint{})
		f, plain := watcher.frame(t), holder.frame(t)
		for _, at := range [][2]int{{50, 50}, {100, 60}, {149, 69}, {48, 48}} { // half the size
			if !near(shade(t, f, at[0], at[1]), 128) || !near(shade(t, plain, at[0], at[1]), 200) {
				t.Errorf("at %v: %d, and %d to the controller", at, shade(t, f, at[0], at[1]), shade(t, plain, at[0], at[1]))
			}
		}
		if !near(shade(t, f, 300, 200), 200) {
			t.Error("all of it is covered")
		}
		watcher.say(object{"type": "ack", "seq": sequence(f)})

		// It moves: the way between its places is covered too. No look at its own time
		// comes between the move and the picture: that would know the new place alone.
		synctest.Wait()
		time.Sleep(95 * time.Millisecond)
		r.screen.set(func(s *screen) { s.secrets = []page.Box{{X: 100, Y: 300, W: 200, H: 40}} })
		r.screen.frame(90)
		f = watcher.frame(t)
		if !near(shade(t, f, 75, 110), 128) {
			t.Error("a moving box was seen on its way")
		}
		watcher.say(object{"type": "ack", "seq": sequence(f)})
		synctest.Wait()
		for len(watcher.frames) > 0 {
			watcher.say(object{"type": "ack", "seq": sequence(<-watcher.frames)})
			synctest.Wait()
		}

		// Where it is cannot be told: no picture.
		r.screen.set(func(s *screen) { s.secretly = errors.New("the page does not answer") })
		for i := range 20 {
			time.Sleep(100 * time.Millisecond)
			r.screen.frame(uint8(10 + i*10))
		}
		synctest.Wait()
		if len(watcher.frames) != 0 {
			t.Error("a picture was shown without knowing what to cover")
		}
		r.screen.set(func(s *screen) { s.secretly = nil })
		watcher.frame(t) // and again, once it can

		// Numbers of the page's that are none cover everything.
		r.screen.set(func(s *screen) { s.secrets = []page.Box{{X: math.NaN(), Y: 1, W: 1, H: 1}} })
	})
}

// A page that does not change, on a machine so slow that each still was under way
// when the reading before it began: who watches sees it all the same, covered.
func TestCoveredWhenSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		r.screen.set(func(s *screen) { s.secrets, s.slow = []page.Box{{X: 100, Y: 100, W: 200, H: 40}}, 20*time.Millisecond })
		m := r.mint(view.Mint{Mode: view.ModeView})
		watcher := r.dial("o1", "run_1", object{"type": "auth", "token": m.Token, "stills": true})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(watcher.frames) == 0 {
			t.Fatal("nothing was shown")
		}
		if f := watcher.frame(t); !near(shade(t, f, 75, 60), 128) {
			t.Error("a secret was seen")
		}
	})
}

// Whoever only watches may say nothing but ack and bye.
func TestWatchersOnlyWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c, hello := r.enter(view.Mint{Mode: view.ModeView})
		if hello["lease"] != "free" {
			t.Errorf("%v", hello)
		}
		for _, m := range []object{{"type": "mouse", "action": "click", "x": 1, "y": 1}, {"type": "take"},
			{"type": "release"}, {"type": "elements"},
			{"type": "copy"}, {"type": "nonsense"}, {"type": "dialog", "accept": true},
			{"type": "file_choose", "name": "x", "size": 1}} {
			c.say(m)
			if e := c.heard(t, "error"); e["code"] != "not_controlling" {
				t.Errorf("%v: %v", m, e)
			}
		}
		c.in <- inbound{true, []byte{2, 1}}
		c.heard(t, "error")
		synctest.Wait()
		if did := r.screen.happened(); len(did) != 0 {
			t.Errorf("%v", did)
		}
		if taken, _ := r.surface.leases(); taken != 0 {
			t.Error("a watcher took control")
		}
	})
}

// A viewer that acknowledges nothing costs nothing: ten minutes of frames, memory flat
// within 2 MB.
func TestStalledViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		r.screen.viewport = page.Viewport{Width: 320, Height: 240}
		c := r.control(view.Mint{})
		c.frame(t)
		heap := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		run := func(n int) {
			for i := range n {
				time.Sleep(50 * time.Millisecond)
				r.screen.frame(uint8(i))
			}
			synctest.Wait()
		}
		run(200)
		before := heap()
		run(12000)
		if after := heap(); after > before+2<<20 {
			t.Errorf("%d bytes more", after-before)
		}
		if len(c.frames) != 0 || len(c.texts) > 20 {
			t.Errorf("%d pictures, %d messages", len(c.frames), len(c.texts))
		}
	})
}
