package corpus_test

import (
	"maps"
	"testing"

	"github.com/sluicehost/sluice/host/browser"
)

// moments are pages where timing decides what a click or a key hits. truth is what the
// page must have reported if the action is verified, or nil if it must never be
// verified. An action that is not verified reported at most that.
var moments = []hazard{
	{"frame loaded twice", `<iframe id=f src="/inner/KEY" style="width:400px;height:200px"></iframe><script>setTimeout(()=>f.src="OTHER/inner/KEY",300)</script>`, innerSave, "", truth{"saved": 1}},
	{"frame that never came, then did",
		`<iframe id=f src="/never/KEY" style="width:400px;height:200px"></iframe><script>setTimeout(()=>f.src="OTHER/inner/KEY",300)</script>`, innerSave, "", truth{"asked": 1, "saved": 1}},
	{"renamed for ever", `<button onclick="done()" id=b>Save</button><script>let n=0;setInterval(()=>b.textContent=n++%2?"Save":"Delete",23)</script>`, also(`"actionable_timeout_ms":600`), "", truth{"saved": 1}},
	{"drawn anew for ever", `<div id=root></div><script>setInterval(()=>root.innerHTML="<button onclick=done()>Save</button>",31)</script>`, "", "", truth{"saved": 1}},
	{"focus that is stolen",
		`<label>Mail <input id=f` + model +
			`></label><label>Other <input id=g oninput="tell('stolen')"></label><script>f.onfocus=()=>setTimeout(()=>g.focus(),0)</script>`, keys("Mail", "abc"), "", nil},
	{"focus that is stolen, and one text",
		`<label>Mail <input id=f` + model +
			`></label><label>Other <input id=g></label><script>f.onfocus=()=>g.focus()</script>`, fill("Mail", "abc"), "", nil},
}

// TestMoments: what is verified is true, whatever the timing, and nothing is done
// twice.
func TestMoments(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := &bench{open(t, s, newHost(t),
		func(o *browser.SessionOptions) { o.Connection, o.Name, o.Connector = "moments", "moments", "corpus" }), s, "moments",
		0}
	for _, h := range moments {
		t.Run(h.name, func(t *testing.T) {
			r, key := b.try(t, h)
			judged(t, r)
			got := s.told(key)
			t.Logf("%s: %v", verdict(r), got)
			if r.Success && !maps.Equal(got, h.truth) {
				t.Errorf("verified, but the page did %v, want %v: %s", got, h.truth, r.Raw)
			}
			if n, _ := got["saved"].(int); n > 1 {
				t.Errorf("saved %d times: %s", n, r.Raw)
			}
		})
	}
}
