package corpus_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/playwright"
)

// TestFlaky acts on random pages: some are usable, others lie. No lie is verified,
// nothing is posted twice, and usable pages succeed in the first call. A long campaign
// has Playwright act on the same pages.
func TestFlaky(t *testing.T) {
	t.Parallel()
	c := campaign.New(t, "flaky pages")
	all := make([]flakyPage, c.Length(20, 5))
	for i := range all {
		all[i].body, all[i].lie = flaky(c)
	}
	s, host := newSite(t), newHost(t)
	var ours, theirs tally
	t.Run("pages", func(t *testing.T) {
		for w := range flakyWorkers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprintf("flaky-%d-", w)
				b := &bench{open(t, s, host,
					func(o *browser.SessionOptions) { o.Connection, o.Name, o.Connector = name, name, "corpus" }), s, name, 0}
				for i := w; i < len(all); i += flakyWorkers {
					b.flaky(t, c, all[i], &ours)
				}
			})
		}
		if os.Getenv("SLUICE_CYCLES") != "" {
			t.Run("playwright", func(t *testing.T) {
				t.Parallel()
				binary, err := chromium.Find(t.Context(), "", false)
				if err != nil {
					t.Fatal(err)
				}
				other := playwright.Start(t, binary.Path)
				for i, p := range all {
					key := fmt.Sprintf("playwright%d", i)
					_, _, err := other.Do(t, playwright.Step{Do: "work", URL: s.visit(key, strings.ReplaceAll(p.body, "KEY", key))})
					theirs.add(p.lie, err == nil)
				}
			})
		}
	})
	t.Logf("ours: %v, %d without recovery", &ours, ours.first)
	if theirs.fair > 0 {
		t.Logf("Playwright: %v", &theirs)
		if ours.rate() < theirs.rate() {
			t.Errorf("worked %.1f %%, Playwright %.1f %%", ours.rate(), theirs.rate())
		}
	}
	// one of a short campaign is more than 1 %, and a machine with too much to do may answer none in time
	if ours.fair-ours.worked > max(1, ours.fair/100) {
		t.Errorf("only %.1f %% of the pages that can be worked were", ours.rate())
	}
}

// flakyWorkers is how many browsers share the pages; they spend most of their time
// waiting.
const flakyWorkers = 3

type flakyPage struct {
	body string
	lie  bool
}

// flaky acts on one page and judges the result.
func (b *bench) flaky(t *testing.T, c *campaign.Campaign, p flakyPage, to *tally) {
	t.Helper()
	key := b.visit(t, p.body)
	r := b.Call(b.request(t, save, key))
	c.Cycle()
	c.Checked(1)
	judged(t, r)
	posts, _ := b.site.told(key)["posted"].(int)
	to.add(p.lie, r.Success)
	if r.Success && r.Recovery == nil && !p.lie {
		to.mu.Lock()
		to.first++
		to.mu.Unlock()
	}
	switch {
	case posts > 1:
		c.Torn("posted %d times: %s\n%s", posts, p.body, r.Raw)
	case r.Success && p.lie:
		c.Torn("a lie was verified: %s\n%s", p.body, r.Raw)
	case r.Success && posts != 1:
		c.Torn("verified, and nothing was posted: %s", p.body)
	case !r.Success && !p.lie:
		c.Refused()
		t.Logf("not worked: %s: %s\n%s", verdict(r), p.body, r.Raw)
	}
}

// A tally counts pages: fair ones are usable, the others lie.
type tally struct {
	mu                                  sync.Mutex // guards what follows, while pages are worked
	fair, worked, first, lies, believed int
}

func (a *tally) add(lie, worked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case lie && worked:
		a.lies, a.believed = a.lies+1, a.believed+1
	case lie:
		a.lies++
	case worked:
		a.fair, a.worked = a.fair+1, a.worked+1
	default:
		a.fair++
	}
}

func (a *tally) rate() float64 { return 100 * float64(a.worked) / float64(max(a.fair, 1)) }

func (a *tally) String() string {
	return fmt.Sprintf("%d of %d worked (%.1f %%), %d of %d lies believed", a.worked, a.fair, a.rate(), a.believed, a.lies)
}

// flaky returns a random page: how its button appears, what is in its way and what a
// click on it does. A page that lies never says Saved for good.
func flaky(c *campaign.Campaign) (body string, lie bool) {
	ms := func(from, to int) int { return from + c.IntN(to-from) }
	button := `<button onclick=act()>Save</button>`
	var does string
	if lie = c.IntN(4) == 0; lie {
		does = pick(c,
			`0`, `post()`, `post(),say('Deleted')`,
			`say('Saved'),fetch('/fails/KEY?after=300ms',{method:'POST'}).then(r=>r.ok||say('idle'))`,
			`post(),say('Saved'),setTimeout(()=>say('idle'),60)`,
			`post(),$('#other').textContent='Saved'`,
			`post(),$('#status').remove()`,
			`fetch('/never/KEY',{method:'POST'}).then(()=>say('Saved'))`,
		)
	} else {
		does = pick(c,
			`post(),say('Saved')`,
			fmt.Sprintf(`post(),setTimeout(()=>say('Saved'),%d)`, ms(50, 900)),
			fmt.Sprintf(`fetch('/post/KEY?after=%dms',{method:'POST'}).then(r=>r.ok&&say('Saved'))`, ms(0, 700)),
			fmt.Sprintf(`say('Saved'),fetch('/post/KEY?after=%dms',{method:'POST'})`, ms(0, 400)),
			fmt.Sprintf(`say('Saving'),setTimeout(()=>{post();const s=$('#status').cloneNode(true);$('#status').replaceWith(s);say('Saved')},%d)`, ms(20, 500)),
			`$('#f').submit()`,
		)
	}
	comes := pick(c,
		`root.innerHTML=button`,
		fmt.Sprintf(`setTimeout(()=>root.innerHTML=button,%d)`, ms(50, 900)),
		fmt.Sprintf(`{const draw=()=>root.innerHTML=button,i=setInterval(draw,%d);draw();setTimeout(()=>clearInterval(i),%d)}`, ms(30, 200), ms(200, 1000)),
		fmt.Sprintf(`{const till=Date.now()+%d,draw=()=>{root.innerHTML=button;Date.now()<till&&requestAnimationFrame(draw)};draw()}`, ms(100, 800)),
		fmt.Sprintf(`{root.innerHTML=button;const b=$('#root button');b.disabled=true;setTimeout(()=>b.disabled=false,%d)}`,
			ms(100, 900)),
	)
	way := pick(c, ``, ``,
		fmt.Sprintf(`{const o=document.createElement('div');o.style.cssText='position:fixed;inset:0;background:#fff;transition:opacity 200ms';document.body.append(o);setTimeout(()=>{o.style.opacity=0;setTimeout(()=>o.remove(),220)},%d)}`, ms(50, 700)),
		fmt.Sprintf(`root.animate([{transform:'translateX(500px)'},{transform:'none'}],%d)`, ms(200, 900)),
		fmt.Sprintf(`{let n=0;const i=setInterval(()=>{above.style.height=(n+=20)+'px';n>160&&clearInterval(i)},%d)}`,
			ms(20, 80)),
		`above.style.height='2500px'`,
		`setInterval(()=>{$('#other').textContent=Math.random()},16)`,
	)
	return fmt.Sprintf(`<form id=f method=post action="/post/KEY"></form><div id=above></div><div id=root></div><button onclick="tell('other')">Save as</button><p id=other></p>
<script>const button=%q,post=()=>tell('posted'),act=()=>{%s};%s;%s</script>`, button, does, comes, way), lie
}

func pick(c *campaign.Campaign, from ...string) string { return from[c.IntN(len(from))] }
