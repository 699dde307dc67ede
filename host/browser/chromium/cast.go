package chromium

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// framesWaiting bounds the frames waiting to be acknowledged. The browser sends no third frame
// before the first is acknowledged.
const framesWaiting = 8

// activeLook is the interval for checking which tab is active.
const activeLook = 250 * time.Millisecond

// castStop bounds how long ending a cast may take.
const castStop = time.Second

// pictured passes a frame to whoever watches.
func (dp *display) pictured(s *chromedp.Target, ev *cdpage.EventScreencastFrame) {
	dp.tab.mu.Lock()
	sink := dp.sink
	dp.tab.mu.Unlock()
	if sink != nil {
		sink(s, ev)
	}
}

// Cast sends pictures of the active tab until ctx ends; only the newest is sent. sent is called
// from this goroutine, and every frame is acknowledged at once.
func (s *Screen) Cast(ctx context.Context, c page.Cast, sent func(page.Frame)) error {
	for {
		t, err := s.tab()
		if err != nil {
			return err
		}
		if err := s.castTab(ctx, t, c, sent); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// castTab casts one tab until it is no longer active or changes its size.
func (s *Screen) castTab(ctx context.Context, t *Tab, c page.Cast, sent func(page.Frame)) error {
	frames := make(chan *cdpage.EventScreencastFrame, framesWaiting)
	t.mu.Lock()
	v := t.display.viewport
	t.display.sink = func(of *chromedp.Target, ev *cdpage.EventScreencastFrame) { // subscribed before the cast starts
		if of == t.session {
			select {
			case frames <- ev:
			default: // too many unacknowledged frames; the browser does not do that
			}
		}
	}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.display.sink = nil
		t.mu.Unlock()
		// Before the next cast starts, which this would stop otherwise.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), castStop)
		defer cancel()
		_ = t.race(stop, false, func(ctx context.Context) error {
			return command(ctx, t.session, cdpage.StopScreencast, cdp.Empty{})
		})
	}()
	if err := t.startCast(ctx, c, v); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	look := time.NewTicker(activeLook)
	defer look.Stop()
	for {
		t.mu.Lock()
		changed, gone, same := t.changed, t.gone, t.display.viewport == v
		t.mu.Unlock()
		if now, err := s.tab(); err != nil || now != t || !same {
			return err
		}
		if gone != nil {
			return gone
		}
		select {
		case ev := <-frames:
			if err := s.passOn(ctx, t, ev, frames, v, sent); err != nil && ctx.Err() == nil {
				return t.explain(ctx, ctx, err)
			}
		case <-changed:
		case <-look.C: // another tab may be active
		case <-s.browser.lost:
			return page.ErrLost
		case <-ctx.Done():
			return nil
		}
	}
}

func (dp *display) startCast(ctx context.Context, c page.Cast, v page.Viewport) error {
	w, h := c.Width, c.Height
	if w <= 0 {
		w = int(float64(v.Width) * max(v.Scale, 1))
	}
	if h <= 0 {
		h = int(float64(v.Height) * max(v.Scale, 1))
	}
	return dp.tab.race(ctx, false, func(ctx context.Context) error {
		return command(ctx, dp.tab.session, cdpage.StartScreencast, cdpage.StartScreencastParams{
			Format: cdpage.StartScreencastFormatJpeg, Quality: new(int64(min(max(c.Quality, 1), 100))), MaxWidth: int64(w),
			MaxHeight: int64(h), EveryNthFrame: int64(max(c.EveryN, 1)), MaxFramesInFlight: 2,
		})
	})
}

// passOn acknowledges a frame and those that arrived meanwhile, and sends the newest.
func (s *Screen) passOn(ctx context.Context, t *Tab, ev *cdpage.EventScreencastFrame,
	more <-chan *cdpage.EventScreencastFrame, v page.Viewport, sent func(page.Frame)) error {
	for {
		ack := cdpage.ScreencastFrameAckParams{SessionID: ev.SessionID}
		if err := s.browser.wire.tell(ctx, t.session.SessionID, cdpage.ScreencastFrameAck.Method, ack); err != nil {
			return err
		}
		select {
		case ev = <-more:
			continue
		default:
		}
		f := page.Frame{At: time.Now(), Viewport: v, Data: ev.Data}
		if m := ev.Metadata; m != nil {
			f.Viewport.Width, f.Viewport.Height = int(m.DeviceWidth), int(m.DeviceHeight)
			if at := m.Timestamp.Float64(); at > 0 {
				f.At = time.UnixMicro(int64(at * 1e6))
			}
		}
		if scale(&f) == nil {
			sent(f)
		}
		return nil
	}
}

// Still takes one picture now.
func (s *Screen) Still(ctx context.Context, quality int) (page.Frame, error) {
	t, err := s.tab()
	if err != nil {
		return page.Frame{}, err
	}
	var f page.Frame
	take := func(ctx context.Context) error {
		at := time.Now()
		got, err := cdp.Call(ctx, t.session, cdpage.CaptureScreenshot, cdpage.CaptureScreenshotParams{
			Format: cdpage.CaptureScreenshotFormatJpeg, Quality: new(int64(min(max(quality, 1), 100))),
			OptimizeForSpeed: new(true),
		})
		if err != nil {
			return err
		}
		f = page.Frame{At: at, Viewport: s.Viewport(), Data: got.Data}
		if err := scale(&f); err != nil || !f.Viewport.Mobile {
			return err
		}
		// The picture's scale is reset only with the next frames; a click before them would miss.
		w, err := t.frames.mainWorld(ctx)
		if err != nil {
			return nil // another document was loaded
		}
		if err := w.wait(ctx, nil, "rested"); err != nil && !worldGone(err) && !errors.Is(err, errWorld) {
			return err
		}
		return nil
	}
	err = t.race(ctx, false, func(ctx context.Context) error { return t.steady(ctx, take) })
	return f, err
}

// scale sets how many picture pixels a CSS pixel has.
func scale(f *page.Frame) error {
	c, err := jpeg.DecodeConfig(bytes.NewReader(f.Data))
	if err == nil && f.Viewport.Width > 0 {
		f.Scale = float64(c.Width) / float64(f.Viewport.Width)
	}
	return err
}
