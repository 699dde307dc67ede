package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
)

// What a message becomes. Points are pixels of a picture of half the size.
func TestInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		c.frame(t)
		for _, tt := range []struct {
			say  string
			want string // what reached the page, one a line; "" for nothing
		}{
			{`{"type":"mouse","action":"mousemove","x":10,"y":20}`, "move 20,40 button 0 modifiers 0"},
			{`{"type":"mouse","action":"mousedown","x":10,"y":20,"button":2}`, "down 20,40 button 2 modifiers 0"},
			{`{"type":"mouse","action":"mouseup","x":10,"y":20,"button":1}`, "up 20,40 button 1 modifiers 0"},
			{`{"type":"mouse","action":"click","x":10,"y":20,"button":7}`, "click 20,40 button 0 modifiers 0"},
			{`{"type":"mouse","action":"click","x":10,"y":20,"button":"right","modifiers":8}`,
				"click 20,40 button 0 modifiers 8"},
			{`{"type":"mouse","action":"dblclick","x":10,"y":20,"button":2}`, "dblclick 20,40 button 0 modifiers 0"},
			{`{"type":"mouse","action":"click","x":-5,"y":9999}`, "click 0,599 button 0 modifiers 0"},
			{`{"type":"scroll","x":1,"y":1,"deltaX":0,"deltaY":120}`, "wheel 2,2 by 0,120"},
			{`{"type":"keyboard","action":"keydown","key":"a","code":"KeyA"}`, "keydown a KeyA 0"},
			{`{"type":"keyboard","action":"keyup","key":"Enter","modifiers":"x"}`, "keyup Enter  0"},
			{`{"type":"keyboard","action":"keydown","key":"ß"}`, "keydown ß  0"},
			{`{"type":"keyboard","action":"keydown","key":"a","modifiers":2}`, "keydown a  2"},
			{`{"type":"keyboard","action":"keydown","key":"F12"}`, ""},
			{`{"type":"keyboard","action":"keydown","key":"I","modifiers":10}`, ""},
			{`{"type":"keyboard","action":"keydown","key":"Z","modifiers":10}`, "keydown Z  10"},
			{`{"type":"keyboard","action":"keydown","key":"i","modifiers":5}`, ""},
			{`{"type":"keyboard","action":"keydown","key":"c","modifiers":2}`, ""},
			{`{"type":"keyboard","action":"keydown","key":"v","modifiers":4}`, ""},
			{`{"type":"keyboard","action":"keydown","key":"w","modifiers":2}`, ""},
			{`{"type":"keyboard","action":"keydown","key":"ArrowLeft","modifiers":1}`, ""},
			{`{"type":"keyboard","action":"keydown","key":"@","modifiers":3}`, "keydown @  3"},
			{`{"type":"text","text":"grüße"}`, "text grüße"},
			{`{"type":"paste","text":"from the clipboard"}`, "text from the clipboard"},
			{`{"type":"composition","text":"かん","start":2,"end":2}`, "compose かん 2-2 false"},
			{`{"type":"composition","text":"漢","commit":true}`, "compose 漢 3-3 true"},
			{`{"type":"touch","action":"touchstart","x":10,"y":20}`, "touchstart 1 20,40"},
			{`{"type":"touch","action":"touchmove","x":11,"y":20,"id":3}`, "touchmove 3 22,40"},
			{`{"type":"touch","action":"touchend","x":11,"y":20}`, "touchend 1 22,40"},
			{`{"type":"touch","action":"touchcancel","x":11,"y":20}`, "touchcancel 1 22,40"},
			{`{"type":"viewport","width":390,"height":844,"mobile":true}`, "viewport 390x844 1 true"},
			{`{"type":"viewport","width":800,"height":600,"deviceScaleFactor":2}`, "viewport 800x600 2 false"},
			{`{"type":"nav","action":"reload"}`, "nav reload"},
			{`{"type":"dialog","accept":true,"text":"yes"}`, `answer true "yes"`},
			{`{"type":"dialog","accept":false}`, `answer false ""`},
		} {
			c.in <- inbound{b: []byte(tt.say)}
			synctest.Wait()
			if d := cmp.Diff(tt.want, strings.Join(r.screen.happened(), "\n")); d != "" {
				t.Errorf("%s\n%s", tt.say, d)
			}
		}
		c.say(object{"type": "copy"})
		if m := c.heard(t, "copy"); m["text"] != "chosen words" {
			t.Errorf("%v", m)
		}
	})
}

// What is no message is refused, does nothing, and the session stays.
func TestInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		for _, say := range []string{
			``, `null`, `1`, `"mouse"`, `[]`, `[{"type":"text","text":"x"}]`, `{}`, `{"type":"eval","text":"x"}`,
			`{"type":1}`, `{"type":"mouse"}`, `{"type":"mouse","action":"hover","x":1,"y":1}`,
			`{"type":"mouse","action":"click","x":1}`, `{"type":"mouse","action":"click","x":"1","y":1}`,
			`{"type":"mouse","action":"click","x":1e999,"y":1}`, `{"type":"mouse","action":"click","x":NaN,"y":1}`,
			`{"type":"mouse","action":"click","x":1e300,"y":1}`, `{"type":"scroll","x":1,"y":1,"deltaX":1}`,
			`{"type":"keyboard","action":"keydown"}`, `{"type":"keyboard","action":"keydown","key":""}`,
			`{"type":"keyboard","action":"press","key":"a"}`, `{"type":"keyboard","action":"keydown","key":5}`,
			`{"type":"text"}`, `{"type":"text","text":5}`, `{"type":"paste","text":null}`,
			`{"type":"text","text":"` + strings.Repeat("x", 65<<10) + `"}`, `{"type":"composition","text":"x"}`,
			`{"type":"composition","text":"x","start":1,"end":0}`, `{"type":"composition","text":"x","start":0,"end":99}`,
			`{"type":"touch","action":"touchstart"}`, `{"type":"touch","action":"touchstart","x":1,"y":1,"id":99}`,
			`{"type":"viewport","width":100,"height":600}`, `{"type":"viewport","width":800.5,"height":600}`,
			`{"type":"viewport","width":8000,"height":600}`,
			`{"type":"viewport","width":800,"height":600,"deviceScaleFactor":99}`,
			`{"type":"viewport","width":800,"height":600,"mobile":"yes"}`, `{"type":"nav","action":"https://evil.example"}`,
			`{"type":"nav"}`, `{"type":"dialog"}`, `{"type":"select_choice"}`, `{"type":"picker"}`,
			`{"type":"file_choose","name":"x"}`, `{"type":"file_choose","name":"x","size":99999999}`,
			`{"type":"file_choose","name":"x","size":-1}`, `{"type":"element","id":"1","action":"delete"}`,
			`{"type":"element","action":"click"}`, `{"type":"ack"}`, `{"type":"ack","seq":-1}`,
			"{\"type\":\"text\",\"text\":\"\xff\"}",
		} {
			c.in <- inbound{b: []byte(say)}
			if e := c.heard(t, "error"); e["code"] != "invalid_input" {
				t.Errorf("%.80s: %v", say, e)
			}
		}
		c.in <- inbound{true, []byte{2, 1, 2, 3}} // a piece of no file
		c.heard(t, "error")
		synctest.Wait()
		if did := r.screen.happened(); len(did) != 0 {
			t.Errorf("%v", did)
		}
		c.say(object{"type": "text", "text": "still here"})
		synctest.Wait()
		if did := r.screen.happened(); len(did) != 1 {
			t.Errorf("%v", did)
		}
		c.in <- inbound{b: bytes.Repeat([]byte("x"), view.MaxMessage+1)}
		c.ended(t, view.CloseTooBig, "")
	})
}

// At most 200 a second, in order, moves coalesced; a page that hangs costs two seconds
// each, drops moves first, and the owner is told.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		for i := range 1000 {
			c.say(object{"type": "text", "text": strings.Repeat("x", i%7)})
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if n := len(r.screen.happened()); n < 200 || n > 402 {
			t.Errorf("%d in a second and a half", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(r.screen.happened()); n < 598 || n > 800 {
			t.Errorf("%d after that: some were lost", n)
		}

		block := make(chan struct{})
		r.screen.set(func(s *screen) { s.block = block })
		c.say(object{"type": "text", "text": "first"})
		synctest.Wait()
		for i := range 100 {
			c.say(object{"type": "mouse", "action": "mousemove", "x": i, "y": 0})
		}
		c.say(object{"type": "text", "text": "last"})
		synctest.Wait()
		r.screen.set(func(s *screen) { s.block = nil })
		close(block)
		synctest.Wait()
		want := []string{"text first", "move 198,0 button 0 modifiers 0", "text last"}
		got := r.screen.happened()
		if len(got) != 3 || got[0] != want[0] || got[2] != want[2] || !strings.HasPrefix(got[1], "move ") {
			t.Errorf("%v", got)
		}

		r.screen.set(func(s *screen) { s.block = make(chan struct{}) })
		for i := range 600 {
			c.say(object{"type": "mouse", "action": []string{"mousedown", "mousemove"}[i%2], "x": 1, "y": 1})
		}
		time.Sleep(2100 * time.Millisecond)
		if e := c.heard(t, "error"); e["code"] != "page_busy" {
			t.Errorf("%v", e)
		}
		for _, did := range r.screen.happened() {
			if did != "hung down" {
				t.Errorf("%s: a move stood in the way", did)
			}
		}
	})
}

// Lists and pickers of the browser's own are drawn by the dashboard and set
// through the control's setter.
func TestPopups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		value := "2026-11-22"
		r.screen.controls[page.Point{X: 20, Y: 20}] = page.Node{Ref: "sel", Tag: "select", Name: "Country",
			Bounds: page.Box{X: 1, Y: 2, W: 3, H: 4},
			Options: []page.Option{{ID: "a", Label: "Austria\u202e", Selected: true}, {ID: "b", Label: "Belgium"},
				{ID: "b", Label: "Bhutan", Disabled: true}}}
		r.screen.controls[page.Point{X: 40, Y: 40}] = page.Node{Ref: "dat", Tag: "input", Type: "date",
			State: page.State{RawValue: &value}}
		r.screen.controls[page.Point{X: 60, Y: 60}] = page.Node{Ref: "many", Tag: "select", Multiple: true}
		c := r.control(view.Mint{})
		c.frame(t)
		point := func(action string, at int) {
			c.say(object{"type": "mouse", "action": action, "x": at / 2, "y": at / 2})
		}
		point("mousedown", 20)
		point("mouseup", 20)
		m := c.heard(t, "select")
		options := m["options"].([]any)
		if len(options) != 3 || options[0].(object)["label"] != "Austria" || options[0].(object)["selected"] != true ||
			options[2].(object)["disabled"] != true {
			t.Errorf("%v", m)
		}
		c.say(object{"type": "select_choice", "id": "2"}) // disabled
		c.heard(t, "error")
		c.say(object{"type": "select_choice", "id": "9"})
		c.heard(t, "error")
		c.say(object{"type": "select_choice", "id": "1"})
		synctest.Wait()
		c.say(object{"type": "select_choice", "id": "1"}) // once
		c.heard(t, "error")
		point("click", 40)
		if m := c.heard(t, "picker"); m["kind"] != "date" || m["value"] != value {
			t.Errorf("%v", m)
		}
		c.say(object{"type": "picker", "value": "2026-12-24"})
		c.say(object{"type": "touch", "action": "touchstart", "x": 10, "y": 10})
		c.say(object{"type": "touch", "action": "touchend", "x": 10, "y": 10})
		c.heard(t, "select")
		point("mousedown", 60)
		point("mouseup", 60)
		synctest.Wait()
		want := []string{"set sel index 1", "set dat text 2026-12-24", "down 60,60 button 0 modifiers 0",
			"up 60,60 button 0 modifiers 0"}
		if d := cmp.Diff(want, r.screen.happened()); d != "" {
			t.Error(d)
		}
	})
}

// A file for the page's chooser: received in pieces, given once, erased.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		c.say(object{"type": "file_choose", "name": "a.pdf", "size": 3})
		if e := c.heard(t, "error"); e["code"] != "gone" { // the page did not ask
			t.Errorf("%v", e)
		}
		choosing := func() { r.screen.set(func(s *screen) { s.choosing = true }) }
		choosing()
		for m := c.heard(t, "state"); m["choosing"] != true; m = c.heard(t, "state") {
		}
		c.say(object{"type": "file_choose", "name": `C:\up\..\a.pdf`, "size": 6})
		c.in <- inbound{true, []byte{2, 'a', 'b', 'c'}}
		c.in <- inbound{true, []byte{2, 'd', 'e', 'f'}}
		if m := c.heard(t, "notice"); m["code"] != "file_given" {
			t.Errorf("%v", m)
		}
		synctest.Wait() // the page's chooser is done with as well
		f := r.surface.files[0]
		if f.String() != "abcdef" || f.name != "a.pdf" || !f.done || f.erased {
			t.Errorf("%+v", f)
		}
		choosing()
		c.say(object{"type": "file_choose", "name": "b", "size": 2})
		c.in <- inbound{true, []byte{2, 1, 2, 3}} // more than was said
		c.heard(t, "error")
		synctest.Wait()
		if f := r.surface.files[1]; !f.erased || f.done {
			t.Errorf("%+v", f)
		}
		c.say(object{"type": "file_choose", "action": "none"})
		synctest.Wait()
		r.surface.uploads = false
		choosing()
		c.say(object{"type": "file_choose", "name": "c", "size": 2})
		if m := c.heard(t, "notice"); m["code"] != "upload_not_permitted" {
			t.Errorf("%v", m)
		}
		synctest.Wait()
		r.surface.uploads = true
		choosing()
		c.say(object{"type": "file_choose", "name": "d", "size": 2})
		synctest.Wait()
		c.say(object{"type": "bye"}) // in the midst of it
		<-c.closed
		synctest.Wait()
		if f := r.surface.files[2]; !f.erased {
			t.Error("a file that was not given is left")
		}
		want := []string{"choose [/uploads/a.pdf]", "choose []", "choose []"}
		if d := cmp.Diff(want, r.screen.happened()); d != "" {
			t.Error(d)
		}
		r.run.Down(view.ReasonLost)
		if !r.surface.files[0].erased {
			t.Error("a file outlives its surface")
		}
	})
}

// Dialogs are shown with the page's host; the state says when they are gone.
func TestDialogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		r.screen.set(func(s *screen) {
			s.facts.Dialog = &page.Dialog{Type: "confirm", Host: "bank.example", Text: "Pay?\u202e\x1b"}
		})
		m := c.heard(t, "state")
		for m["dialog"] == nil {
			m = c.heard(t, "state")
		}
		if d := cmp.Diff(object{"type": "confirm", "host": "bank.example", "text": "Pay?"}, m["dialog"]); d != "" {
			t.Error(d)
		}
		r.screen.set(func(s *screen) { s.facts.Dialog = nil })
		if m := c.heard(t, "state"); m["dialog"] != nil || m["title"] != "Sign in" {
			t.Errorf("%v", m)
		}
	})
}

// Who looks is told of files that a page offers, once in a second of each kind,
// however many it offers.
func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c := r.control(view.Mint{})
		for range 1000 {
			r.run.Notice("download_denied", "a\n"+strings.Repeat("x", 300))
		}
		r.run.Notice("download_done", "b.csv")
		if m := c.heard(t, "notice"); m["code"] != "download_denied" || strings.Contains(m["name"].(string), "\n") ||
			len(m["name"].(string)) > 255 {
			t.Errorf("%v", m)
		}
		if m := c.heard(t, "notice"); m["code"] != "download_done" || m["name"] != "b.csv" {
			t.Errorf("%v", m)
		}
		time.Sleep(time.Second)
		r.run.Notice("download_denied", "c")
		if m := c.heard(t, "notice"); m["name"] != "c" {
			t.Errorf("%v", m)
		}
	})
}

// Without seeing the picture: elements by role and name.
func TestElements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		secret := "hunter2"
		r.screen.elements = []page.Node{{Ref: "r1", Tag: "input", Role: "textbox", Name: "User", Editable: true},
			{Ref: "r2", Tag: "input", Role: "textbox", Name: "Password", Editable: true, Secret: true,
				State: page.State{RawValue: &secret, TextValue: &secret}},
			{Ref: "r3", Tag: "button", Role: "button", Name: "Sign in"},
			{Ref: "r4", Tag: "select", Name: "Country", Options: []page.Option{{ID: "a", Label: "Austria"}}},
			{Ref: "r5", Tag: "label", Text: "User", Labels: "r1"},
			{Ref: "r6", Tag: "label", Text: "Stay signed in", Labels: "r9"},
			{Ref: "r7", Tag: "div", Text: secret, Editable: true}}
		c := r.control(view.Mint{})
		c.say(object{"type": "element", "id": "0", "action": "click"}) // before it was shown any
		c.heard(t, "error")
		c.say(object{"type": "elements"})
		m := c.heard(t, "elements")
		raw, err := json.Marshal(m)
		if err != nil || len(m["elements"].([]any)) != 6 || strings.Contains(string(raw), "r1") ||
			strings.Contains(string(raw), secret) {
			t.Errorf("%s", raw)
		}
		var named []any // a label whose control is there is no row, one whose control is hidden is
		for _, e := range m["elements"].([]any) {
			named = append(named, e.(map[string]any)["name"])
		}
		if d := cmp.Diff([]any{"User", "Password", "Sign in", "Country", "Stay signed in", ""}, named); d != "" {
			t.Error(d)
		}
		c.say(object{"type": "element", "id": "0", "action": "type", "text": "me"})
		c.say(object{"type": "element", "id": "1", "action": "focus"})
		c.say(object{"type": "element", "id": "2", "action": "click"})
		c.say(object{"type": "element", "id": "3", "action": "open"})
		c.heard(t, "select")
		want := []string{"focus r1", "text me", "focus r2", "click element r3"}
		if d := cmp.Diff(want, r.screen.happened()); d != "" {
			t.Error(d)
		}
	})
}

// FuzzMessage: no message makes the host fail, or reaches the page without bounds.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{`{"type":"mouse","action":"click","x":1,"y":1}`,
		`{"type":"composition","text":"x","start":0,"end":1}`, `{"type":"element","id":"0","action":"type","text":"x"}`,
		`{"type":"file_choose","name":"../../etc/passwd","size":0}`, `{"type":"select_choice","id":"-1"}`,
		`{"type":"keyboard","action":"keydown","key":"\u0000"}`, `{"type":"viewport","width":240,"height":240}`} {
		f.Add([]byte(s), false)
	}
	f.Add([]byte{2, 0, 255}, true)
	f.Fuzz(func(t *testing.T, raw []byte, binary bool) {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t)
			defer r.views.Close()
			r.screen.choosing = true
			r.screen.elements = []page.Node{{Ref: "r", Tag: "select"}}
			c := r.control(view.Mint{})
			c.frame(t)
			c.say(object{"type": "elements"})
			c.in <- inbound{binary, raw}
			synctest.Wait()
			for _, f := range r.surface.files {
				if strings.ContainsAny(f.name, `/\`) || f.name == ".." || f.Len() > view.MaxUpload {
					t.Errorf("%q", f.name)
				}
			}
			v := r.screen.Viewport()
			if v.Width < 240 || v.Width > 3840 || v.Height < 240 || v.Height > 3840 {
				t.Errorf("%+v", v)
			}
			select {
			case <-c.closed:
				if !bytes.Contains(raw, []byte("bye")) && c.code != view.CloseTooBig {
					t.Errorf("closed with %d", c.code)
				}
			default:
			}
		})
	})
}
