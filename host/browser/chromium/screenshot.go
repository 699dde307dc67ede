package chromium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	pictureBytes  = 4 << 20
	picturePixels = 25_000_000
	// showLimit bounds how long it takes to show again what was hidden for a picture.
	showLimit = time.Second
	// drawLimit is how long to wait for a page without a layout, drawEvery the interval of the
	// tries.
	drawLimit = 2 * time.Second
	drawEvery = 100 * time.Millisecond
)

// Screenshot takes a picture of the visible part of the tab, or of the whole page. Nodes to cover
// are hidden meanwhile, so they show nowhere even if the page moves them, and are painted over
// where they were just before and just after. If the page interferes with that, the whole picture
// is painted over. It returns page.ErrTooLarge if the picture exceeds 4 MiB or 25 Mpx at every
// quality. A page without a layout is awaited for up to drawLimit; then the error is
// page.ErrUndrawn.
func (dp *display) Screenshot(ctx context.Context, s page.Shot) (page.Picture, error) {
	for until := time.Now().Add(drawLimit); ; {
		p, err := dp.screenshot(ctx, s)
		if !errors.Is(err, page.ErrUndrawn) || time.Now().After(until) {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, err
		case <-time.After(drawEvery): // it may be laid out by then
		}
	}
}

func (dp *display) screenshot(ctx context.Context, s page.Shot) (page.Picture, error) {
	var p page.Picture
	err := dp.tab.call(ctx, func(ctx context.Context) error {
		area, err := dp.area(ctx, s)
		if err != nil {
			return err
		}
		before, err := dp.boxes(ctx, s.Cover)
		if err != nil {
			return err
		}
		shown, err := dp.hide(ctx, s.Cover)
		if err != nil {
			return err
		}
		var got cdpage.CaptureScreenshotResult
		err = dp.tab.steady(ctx, func(ctx context.Context) (err error) {
			got, err = cdp.Call(ctx, dp.tab.session, cdpage.CaptureScreenshot, cdpage.CaptureScreenshotParams{
				Format: cdpage.CaptureScreenshotFormatPng, Clip: area.clip, CaptureBeyondViewport: &s.Full,
				OptimizeForSpeed: new(true),
			})
			return unpictured(err)
		})
		if kept := shown(); !kept {
			before = append(before, page.Box{X: area.x, Y: area.y, W: area.w, H: area.h})
		}
		if err != nil {
			return err
		}
		after, err := dp.boxes(ctx, s.Cover)
		if err != nil {
			return err
		}
		p, err = area.encode(got.Data, append(before, after...), s)
		return err
	})
	return p, err
}

// unpictured translates the error of taking a picture. A page that is being left, has no size or
// drew nothing has no picture, which is no fault of the host; the browser may report that only as
// an internal error.
func unpictured(err error) error {
	e, ok := errors.AsType[*cdproto.Error](err)
	if !ok || worldGone(err) {
		return err
	}
	const internal = -32603 // of JSON-RPC
	for _, s := range []string{"Unable to capture screenshot", "with 0 width", "with 0 height", "Page is too large"} {
		if e.Code == internal || strings.Contains(e.Message, s) {
			return fmt.Errorf("%w: %w", page.ErrUndrawn, err)
		}
	}
	return err
}

// hide hides nodes until shown is called, which must happen in any case. shown reports whether they
// stayed hidden all the time. Nodes that are gone count as hidden.
func (dp *display) hide(ctx context.Context, nodes []page.Ref) (shown func() bool, err error) {
	in := make(map[*world][]int)
	for _, r := range nodes {
		if w, n, err := dp.tab.frames.worldOf(r); err == nil {
			in[w] = append(in[w], n)
		}
	}
	shown = func() bool {
		kept := true
		for w := range in {
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), showLimit)
			var of bool
			err := w.call(limit, &of, "unhide")
			cancel()
			kept = kept && err == nil && of
		}
		return kept
	}
	for w, list := range in {
		if err = w.wait(ctx, nil, "hide", list); worldGone(err) || errors.Is(err, errWorld) {
			delete(in, w)
			err = nil
		}
		if err != nil {
			shown()
			return nil, err
		}
	}
	return shown, nil
}

// An area is the part of the page in a picture: its corner and size in CSS pixels of the viewport.
type area struct {
	x, y, w, h float64
	clip       *cdpage.Viewport
}

func (dp *display) area(ctx context.Context, s page.Shot) (area, error) {
	m, err := cdp.Call(ctx, dp.tab.session, cdpage.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return area{}, unpictured(err)
	}
	v, content := m.CSSVisualViewport, m.CSSContentSize
	if v == nil || content == nil {
		return area{}, fmt.Errorf("%w: the browser does not say how large the page is", page.ErrUndrawn)
	}
	dp.tab.mu.Lock()
	screen := dp.viewport
	dp.tab.mu.Unlock()
	a := area{w: v.ClientWidth, h: v.ClientHeight}
	if s.Full {
		a = area{x: -v.PageX, y: -v.PageY, w: content.Width, h: content.Height}
	}
	// A page without a layout, or an error page of the browser, may have no size.
	if a.w < 1 {
		a.w = float64(max(screen.Width, 1))
	}
	if a.h < 1 {
		a.h = float64(max(screen.Height, 1))
	}
	if s.Clip != nil {
		c := meet(*s.Clip, page.Box{X: a.x, Y: a.y, W: a.w, H: a.h})
		if c.Empty() {
			return area{}, page.ErrGone
		}
		a = area{x: c.X, y: c.Y, w: c.W, h: c.H}
	}
	a.w, a.h = math.Ceil(a.w), math.Ceil(a.h)
	if a.w*a.h > picturePixels {
		return area{}, page.ErrTooLarge
	}
	a.clip = &cdpage.Viewport{X: a.x + v.PageX, Y: a.y + v.PageY, Width: a.w, Height: a.h, Scale: 1}
	return a, nil
}

// boxes returns the boxes of nodes in the viewport of the tab. Nodes that are gone are left out.
func (dp *display) boxes(ctx context.Context, nodes []page.Ref) ([]page.Box, error) {
	var list []page.Box
	for _, r := range nodes {
		w, n, err := dp.tab.frames.worldOf(r)
		if err != nil {
			continue
		}
		var got []*page.Box
		if err := w.call(ctx, &got, "boxesOf", []int{n}); err != nil {
			if worldGone(err) {
				continue
			}
			return nil, err
		}
		at, err := dp.place(ctx, w)
		if err != nil {
			return nil, err
		}
		for _, b := range got {
			if b != nil {
				list = append(list, at.box(*b))
			}
		}
	}
	return list, nil
}

// place returns the place of a world's document in the viewport of the tab.
func (dp *display) place(ctx context.Context, w *world) (documentPlace, error) {
	at := documentPlace{scale: 1}
	for {
		o, main := dp.tab.around(w)
		if main {
			return at, nil
		}
		if o.world == nil {
			return at, fmt.Errorf("%w: a frame", page.ErrGone)
		}
		var p framePassage
		if err := o.world.call(ctx, &p, "place", o.number); err != nil {
			return at, err
		}
		at = documentPlace{x: p.X + p.S*at.x, y: p.Y + p.S*at.y, scale: p.S * at.scale}
		w = o.world
	}
}

func (p documentPlace) box(b page.Box) page.Box {
	return page.Box{X: p.x + p.scale*b.X, Y: p.y + p.scale*b.Y, W: p.scale * b.W, H: p.scale * b.H}
}

// encode paints over the covered boxes and encodes the picture in the wanted format. The quality of
// a JPEG is reduced until it fits.
func (a area) encode(data []byte, cover []page.Box, s page.Shot) (page.Picture, error) {
	config, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return page.Picture{}, fmt.Errorf("%w: its picture cannot be read: %w", page.ErrUndrawn, err)
	}
	if config.Width*config.Height > 4*picturePixels {
		return page.Picture{}, page.ErrTooLarge
	}
	p := page.Picture{MIME: "image/jpeg", Width: config.Width, Height: config.Height}
	if s.Format == "png" {
		p.MIME = "image/png"
	}
	if s.Format == "png" && len(cover) == 0 {
		return fitting(p, data)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return page.Picture{}, fmt.Errorf("%w: its picture cannot be read: %w", page.ErrUndrawn, err)
	}
	flat := image.NewRGBA(image.Rect(0, 0, config.Width, config.Height))
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Src)
	kx, ky := float64(config.Width)/a.w, float64(config.Height)/a.h
	for _, b := range cover {
		r := image.Rect(int(math.Floor((b.X-a.x)*kx)), int(math.Floor((b.Y-a.y)*ky)), int(math.Ceil((b.X+b.W-a.x)*kx)),
			int(math.Ceil((b.Y+b.H-a.y)*ky)))
		draw.Draw(flat, r.Inset(-2), image.NewUniform(color.Gray{Y: 0x55}), image.Point{}, draw.Src)
	}
	var out bytes.Buffer
	if s.Format == "png" {
		if err := png.Encode(&out, flat); err != nil {
			return page.Picture{}, err
		}
		return fitting(p, out.Bytes())
	}
	for q := min(max(s.Quality, 1), 100); ; q /= 2 {
		out.Reset()
		if err := jpeg.Encode(&out, flat, &jpeg.Options{Quality: max(q, 1)}); err != nil {
			return page.Picture{}, err
		}
		if out.Len() <= pictureBytes || q <= 1 {
			return fitting(p, out.Bytes())
		}
	}
}

// fitting returns a picture with its content, or page.ErrTooLarge.
func fitting(p page.Picture, data []byte) (page.Picture, error) {
	if len(data) > pictureBytes {
		return page.Picture{}, page.ErrTooLarge
	}
	p.Data = data
	return p, nil
}
