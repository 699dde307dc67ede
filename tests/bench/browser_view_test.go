//go:build unix

package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"image/color"
	"image/jpeg"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/tests/browsing"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// lent is a surface that only its owner uses.
type lent struct{}

func (lent) Taken(context.Context) error { return nil }
func (lent) Released()                   {}
func (lent) Sealed() []page.Ref          { return nil }
func (lent) Upload(context.Context, string, int64) (view.Upload, error) {
	return nil, view.ErrUploads
}

// A viewer is an owner's connection to the live view, as the dashboard's page makes it.
// It reads all the time, and acknowledges the pictures that are taken from it.
type viewer struct {
	b    *testing.B
	conn *websocket.Conn
	came chan message // closed at the end
}

type message struct {
	binary bool
	raw    []byte
}

func (v *viewer) read() {
	defer close(v.came)
	for {
		kind, raw, err := v.conn.ReadMessage()
		if err != nil {
			return
		}
		v.came <- message{kind == websocket.BinaryMessage, raw}
	}
}

// watching logs in, asks for a view with control, and connects.
func watching(b *testing.B, h *served.Host, run string) *viewer {
	b.Helper()
	link, err := h.Server.LoginLink(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	base, token, _ := strings.Cut(link.PlainURL, "/ui/login#")
	header := http.Header{"Origin": {base}, "Content-Type": {"application/json"}}
	post := func(path string, body, out any) *http.Response {
		raw, err := json.Marshal(body)
		if err != nil {
			b.Fatal(err)
		}
		r, err := http.NewRequestWithContext(b.Context(), "POST", base+path, bytes.NewReader(raw))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = header.Clone()
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(out); err != nil || res.StatusCode >= 300 {
			b.Fatalf("%s: %d %v", path, res.StatusCode, err)
		}
		return res
	}
	var session struct{ CSRFToken string }
	cookie := post("/ui/session", map[string]string{"token": token}, &session).Cookies()[0]
	header.Set("Cookie", cookie.Name+"="+cookie.Value)
	header.Set("X-Sluice-Csrf", session.CSRFToken)
	var minted struct{ Token string }
	post("/v1/runs/"+run+"/browser/views", map[string]string{"mode": "control"}, &minted)
	header.Del("Content-Type")
	conn, _, err := websocket.DefaultDialer.DialContext(b.Context(), "ws"+strings.TrimPrefix(base, "http")+"/v1/runs/"+run+
		"/browser/view", header)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	v := &viewer{b, conn, make(chan message, 64)}
	go v.read()
	v.say(map[string]any{"type": "auth", "token": minted.Token})
	return v
}

func (v *viewer) say(m any) {
	v.b.Helper()
	if err := v.conn.WriteJSON(m); err != nil {
		v.b.Fatal(err)
	}
}

// next returns the next picture, which it acknowledges, or the next message.
func (v *viewer) next() (picture []byte, m map[string]any) {
	v.b.Helper()
	var got message
	select {
	case got = <-v.came:
	case <-time.After(30 * time.Second):
	}
	switch {
	case got.raw == nil:
		v.b.Fatal("nothing comes any more")
	case got.binary:
		v.say(map[string]any{"type": "ack", "seq": binary.BigEndian.Uint32(got.raw[1:])})
		return got.raw[view.HeaderSize:], nil
	}
	decode(v.b, got.raw, &m)
	return nil, m
}

// until reads until a picture is dark in its middle, or is not.
func (v *viewer) until(dark bool) {
	v.b.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if p, _ := v.next(); p != nil && isDark(v.b, p) == dark {
			return
		}
	}
	v.b.Fatal("no such picture")
}

func isDark(b *testing.B, picture []byte) bool {
	b.Helper()
	m, err := jpeg.Decode(bytes.NewReader(picture))
	if err != nil {
		b.Fatal(err)
	}
	at := m.Bounds().Size().Div(2)
	return color.GrayModel.Convert(m.At(at.X, at.Y)).(color.Gray).Y < 128
}

// BenchmarkLiveView measures the owner's picture of a page of 1280 by 720 that changes
// all the time, while in control, through the service's socket, compared with the
// browser's own screencast of the same page without a service. It then measures the
// time from an input to the picture that shows its effect, and the memory that the host
// keeps for a viewer that stopped acknowledging. Goals: 25 pictures a second, 80 ms at
// p50, 2 MB.
func BenchmarkLiveView(b *testing.B) {
	const span, stalled, inputs = 10 * time.Second, 60 * time.Second, 60
	for b.Loop() {
		h, _ := emptyService(b)
		b.Cleanup(func() { h.Close() })
		connect(b, h, "one", step{"do": "otp", "text": "Code?"})
		id := startRun(b, h, "one")
		waitFor(b, h, id, served.Asks)
		browser := browsing.Lone(b, map[string]string{"/moves": browsing.Moving, "/flips": browsing.Flipping})
		visit := func(path string) {
			if _, err := browser.Tabs()[0].Navigate(b.Context(), "http://viewed.test"+path, "load"); err != nil {
				b.Fatal(err)
			}
		}

		visit("/moves")
		raw := 0
		ctx, stop := context.WithTimeout(b.Context(), span)
		if err := browser.Screen().Cast(ctx, page.Cast{Quality: 60, EveryN: 1}, func(page.Frame) { raw++ }); err != nil {
			b.Fatal(err)
		}
		stop()

		run := h.Service.Views().Begin(string(id), lent{}, func(string, string, map[string]any) {})
		run.Up(browser.Screen())
		run.Asked("i1", "manual_action")
		v := watching(b, h, string(id))
		for m := map[string]any(nil); m["lease"] != "yours"; {
			_, m = v.next()
		}
		frames, size, begun := 0, 0, time.Now()
		for time.Since(begun) < span {
			if p, _ := v.next(); p != nil {
				frames++
				size += len(p)
			}
		}
		before := kept()
		time.Sleep(stalled)
		grown := kept() - before

		visit("/flips")
		v.until(false)
		var took []time.Duration
		for i := range inputs {
			begun := time.Now()
			v.say(map[string]any{"type": "mouse", "action": "mousedown", "x": 640, "y": 360})
			v.say(map[string]any{"type": "mouse", "action": "mouseup", "x": 640, "y": 360})
			v.until(i%2 == 0)
			took = append(took, time.Since(begun))
		}
		run.End()
		mine, theirs := float64(frames)/span.Seconds(), float64(raw)/span.Seconds()
		b.ReportMetric(mine, "frames/s")
		b.ReportMetric(theirs, "screencast-frames/s")
		b.ReportMetric(mine/theirs, "view/screencast")
		b.ReportMetric(float64(size)*8/1e6/span.Seconds(), "Mbit/s")
		b.ReportMetric(grown, "stalled-growth-MB")
		b.ReportMetric(percentile(millis(took), 50), "input-p50-ms")
		b.ReportMetric(percentile(millis(took), 90), "input-p90-ms")
	}
}

func millis(all []time.Duration) (out []float64) {
	for _, d := range all {
		out = append(out, ms(d))
	}
	return out
}

// kept is the memory in use, in MB.
func kept() float64 {
	runtime.GC()
	runtime.GC() // what was pooled goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
