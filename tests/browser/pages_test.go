package browser_test

import (
	"fmt"
	"net/http"
	"sync"
)

// The pages that the engine is tested on, by name: some are honest and slow, some lie.
// say writes into the status that expectations are about.
const frame = `<!doctype html><meta charset=utf-8><title>%s</title><style>body{margin:20px;font:16px sans-serif}
button,.box{width:120px;height:32px}</style><script>const say=t=>document.getElementById("status").textContent=t;
const post=()=>fetch("/post/%s",{method:"POST",keepalive:true});</script>%s<p id=status data-testid=status>idle</p>`

var pages = map[string]string{
	"honest": `<button onclick="post();say('Saved')">Save</button>`,
	"noop":   `<button>Save</button>`,
	"wrong":  `<button onclick="post();say('Deleted')">Save</button>`,
	"rolled": `<button onclick="post();say('Saved');setTimeout(()=>say('idle'),300)">Save</button>`,
	"before": `<button onclick="post()">Save</button><script>addEventListener("DOMContentLoaded",()=>say("Saved"))</script>`,
	"flees":  `<button id=b onmousemove="b.style.marginLeft=b.offsetLeft>200?0:'400px'" onclick="say('Saved')">Save</button>`,
	"shies":  `<button id=b onmousemove="b.style.marginLeft='400px'" onclick="say('Saved')">Save</button>`,
	"covered": `<button onclick="say('Saved')">Save</button><div role=dialog style="position:fixed;inset:0;background:#0003"
		onclick="say('Closed')"></div>`,
	"endless":    `<button onclick="post();for(;;);">Save</button>`,
	"oscillates": `<button onclick="let n=0;setInterval(()=>say(n++%2?'Saved':'idle'),150)">Save</button>`,

	"late": `<div id=root></div><script>setTimeout(()=>root.innerHTML="<button onclick=\"say('Saved')\">Save</button>",1200)</script>`,
	"rerender": `<div id=root></div><script>const draw=()=>{root.innerHTML="<button>Save</button>";root.firstChild.onclick=()=>{say("Saved");clearInterval(i)}};
		draw();const i=setInterval(draw,150);setTimeout(()=>clearInterval(i),1500)</script>`,
	"fades": `<button onclick="say('Saved')">Save</button><div id=o style="position:fixed;inset:0;background:#fff"></div>
		<script>setTimeout(()=>o.remove(),700)</script>`,
	"moves": `<style>@keyframes in{from{transform:translateX(600px)}}#b{animation:in 900ms linear}</style><button id=b onclick="say('Saved')">Save</button>`,
	"spins": `<style>@keyframes r{50%{transform:translateX(8px)}}#b{animation:r 1s linear infinite}</style><button id=b onclick="say('Saved')">Save</button>`,
	"slow":  `<button onclick="post();setTimeout(()=>say('Saved'),1400)">Save</button>`,

	"below":  `<div style="height:3000px"></div><button onclick="say('Saved')">Save</button>`,
	"alert":  `<button onclick="say(confirm('Really?')?'Saved':'no')">Save</button>`,
	"shadow": `<div id=host></div><script>const r=host.attachShadow({mode:"open"});r.innerHTML="<button>Save</button>";r.firstChild.onclick=()=>say("Saved")</script>`,
	"inside": `<iframe src="/page/honest" style="width:400px;height:200px"></iframe>`,
	"other":  `<iframe src="http://pay.test/page/honest" style="width:400px;height:200px"></iframe>`,

	"controls": `<label>Volume <input type=range min=0 max=100 value=10></label>
		<label>Steps <input type=range min=0 max=100 step=5 value=10></label>
		<label>Count <input type=number min=0 max=20 value=1></label>
		<label>Theme <select><option value=l>Light<option value=d>Dark</select></label>
		<label><input type=checkbox onchange="say(this.checked?'on':'off')">Terms</label>
		<label>Mail <input></label> <label>Note <textarea></textarea></label>
		<div role=slider aria-label=Aria tabindex=0 aria-valuemin=0 aria-valuemax=50 aria-valuenow=5 class=box style="width:200px;background:#ccc"></div>
		<div role=slider aria-label=Track tabindex=0 aria-valuemin=0 aria-valuemax=100 aria-valuenow=5 style="width:216px;height:20px;background:#ccc"></div>
		<div id=combo role=combobox aria-label=Colour aria-haspopup=listbox aria-expanded=false tabindex=0 class=box style="background:#eee">Red</div>
		<ul id=list role=listbox hidden><li role=option id=o1>Red<li role=option id=o2>Blue</ul>
		<script>
		const q=s=>document.querySelector(s), a=q("[aria-label=Aria]"), t=q("[aria-label=Track]");
		a.onkeydown=e=>{const d={ArrowUp:1,ArrowRight:1,ArrowDown:-1,ArrowLeft:-1}[e.key];if(d)a.ariaValueNow=Math.min(50,Math.max(0,+a.ariaValueNow+d))};
		t.onmousedown=e=>{if(e.isTrusted)t.ariaValueNow=Math.round((e.offsetX-8)/2)};
		combo.setAttribute("aria-controls","list");
		combo.onclick=()=>{list.hidden=!list.hidden;combo.ariaExpanded=String(!list.hidden)};
		for(const o of list.children)o.onclick=()=>{combo.textContent=o.textContent;for(const x of list.children)x.ariaSelected=String(x==o);list.hidden=true;combo.ariaExpanded="false"};
		</script>`,
	"lazy": `<div id=rows style="height:300px;overflow:auto" role=group aria-label=Rows></div><script>
		let n=0;const more=()=>{for(let i=0;i<20;i++)rows.insertAdjacentHTML("beforeend","<div data-testid=row"+ ++n+" style='height:40px'>Row "+n+"</div>")};
		more();rows.onscroll=()=>{if(n<100&&rows.scrollTop+rows.clientHeight>rows.scrollHeight-100)setTimeout(more,60)};</script>`,
	"link": `<a href="/page/honest">Next</a>`,
	"form": `<form method=post action="/post/form"><button>Save</button></form>`,
}

// A server serves the pages under every name, and counts what is posted.
type server struct {
	mu    sync.Mutex // guards posts
	posts map[string]int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var kind, name string
	_, _ = fmt.Sscanf(r.URL.Path, "/%4s/%s", &kind, &name)
	if r.Method == http.MethodPost {
		s.mu.Lock()
		s.posts[name]++
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if name == "form" && r.Method == http.MethodPost {
		_, _ = fmt.Fprint(w, `<!doctype html><p data-testid=status>Saved</p>`)
		return
	}
	body, ok := pages[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = fmt.Fprintf(w, frame, name, name, body)
}

// count returns the number of posts from a page, and resets it.
func (s *server) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.posts[name]
	delete(s.posts, name)
	return n
}
