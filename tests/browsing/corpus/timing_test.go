package corpus_test

import "strings"

// Pages whose parts come and go at all times. The first call succeeds on those that are
// usable.
var timing = []hazard{
	{"late render", `<div id=root></div><script>setTimeout(()=>root.innerHTML="<button onclick=done()>Save</button>",800)</script>`, "", "verified", truth{"saved": 1}},
	{"re-rendered on every frame, for a while", `<div id=root></div><script>const till=Date.now()+900,draw=()=>{root.innerHTML="<button onclick=done()>Save</button>";if(Date.now()<till)requestAnimationFrame(draw)};draw()</script>`, "", "verified", truth{"saved": 1}},
	{"re-rendered every 150 ms", `<div id=root></div><script>const draw=()=>root.innerHTML="<button onclick=done()>Save</button>";draw();const i=setInterval(draw,150);setTimeout(()=>clearInterval(i),1500)</script>`, "", "verified", nil},
	{"neighbours re-rendered for ever", `<button onclick="done()">Save</button><div id=root></div><script>setInterval(()=>root.innerHTML="<b>"+Math.random()+"</b>",16)</script>`, "", "verified", truth{"saved": 1}},
	{"fading overlay", `<button onclick="done()">Save</button><div id=o style="position:fixed;inset:0;background:#fff;transition:opacity 400ms"></div><script>setTimeout(()=>{o.style.opacity=0;setTimeout(()=>o.remove(),450)},300)</script>`, "", "verified", truth{"saved": 1}},
	{"moves to its place", `<style>@keyframes in{from{transform:translateX(600px)}}#b{animation:in 900ms linear}</style><button id=b onclick="done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"pushed down by what loads", `<div id=a></div><button onclick="done()">Save</button><br><button onclick="tell('deleted')">Delete</button><script>let n=0;const i=setInterval(()=>{a.style.height=(n+=24)+"px";n>200&&clearInterval(i)},60)</script>`, "", "verified", truth{"saved": 1}},
	{"endless animation", `<style>@keyframes r{50%{transform:translateX(8px)}}#b{animation:r 1s linear infinite}</style><button id=b onclick="done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"disabled at first", `<button disabled id=b onclick="done()">Save</button><script>setTimeout(()=>b.disabled=false,800)</script>`, "", "verified", truth{"saved": 1}},
	{"hidden at first", `<button style="visibility:hidden" id=b onclick="done()">Save</button><script>setTimeout(()=>b.style.visibility="",500)</script>`, "", "verified", truth{"saved": 1}},
	{"slow to show it", `<button onclick="tell('saved');setTimeout(()=>say('Saved'),1400)">Save</button>`, "", "verified", truth{"saved": 1}},
	{"busy before it shows it", `<button onclick="tell('saved');this.setAttribute('aria-busy','true');setTimeout(()=>{this.removeAttribute('aria-busy');say('Saved')},2500)">Save</button>`, "", "verified", truth{"saved": 1}},
	{"a change of a page that is still", `<button onclick="done()">Save</button>`, anyChange, "verified", truth{"saved": 1}},
	{"a new part of a page with a clock", `<button onclick="tell('saved');document.body.append(document.createElement('hr'))">Save</button><p id=c></p><script>setInterval(()=>c.textContent=Math.random(),400)</script>`, anyChange, "verified", truth{"saved": 1}},
	{"polls while it shows it", `<button onclick="done();fetch('/never/KEY?a')">Save</button>`, "", "verified", truth{"saved": 1, "asked": 1}},
	{"busy for ever", `<button onclick="done()">Save</button><script>document.body.ariaBusy="true"</script>`, "", "verified", truth{"saved": 1}},
	{"a clock beside it", `<button onclick="tell('saved');const s=$('#status');setInterval(()=>s.textContent='Saved at '+Date.now()%1e6,1000);say('Saved at')">Save</button>`, strings.Replace(save, `"op":"equals"`, `"op":"contains"`, 1), "verified", truth{"saved": 1}},
	{"shown, then drawn again", `<button onclick="done();setTimeout(()=>{const s=$('#status'),c=s.cloneNode(true);s.replaceWith(c)},20)">Save</button>`, "", "verified", truth{"saved": 1}},
	{"freezes before", `<button onclick="done()">Save</button><script>setTimeout(()=>{const e=Date.now()+2000;while(Date.now()<e);},20)</script>`, "", "verified", truth{"saved": 1}},
	{"freezes for 3 s in the click", `<button onclick="tell('saved');const e=Date.now()+3000;while(Date.now()<e);say('Saved')">Save</button>`, "", "verified", truth{"saved": 1}},
	{"replaced under the pointer", `<div id=root></div><script>const draw=()=>{root.innerHTML="<button onclick=done()>Save</button>";};draw();root.firstChild.onmousemove=draw</script>`, "", "verified", truth{"saved": 1}},
	{"opens on hover", `<style>#m{display:none}#h:hover #m{display:block}</style><div id=h tabindex=0 role=button aria-label=Menu>Menu<div id=m><button onclick="done()">Save</button></div></div>`,
		`{"verb":"hover","target":{"selector":{"role":"button","name":"Menu"}}}` + "\n" + save, "verified", truth{"saved": 1}},
	{"server that never answers", `<button onclick="fetch('/never/KEY',{method:'POST'}).then(()=>say('Saved'))">Save</button>`, "", "VERIFICATION_FAILED", truth{"asked": 1}},
	{"30,000 nodes", `<button onclick="done()">Save</button><div id=big></div><script>let h="";for(let i=0;i<15000;i++)h+="<p>row "+i+"<i></i></p>";big.innerHTML=h</script>`, also(`"deadline_ms":30000`), "verified", truth{"saved": 1}},
	{"5,000 buttons", `<button onclick="done()">Save</button><div id=big></div><script>let h="";for(let i=0;i<5000;i++)h+="<button>"+i+"</button>";big.innerHTML=h</script>`, also(`"deadline_ms":30000`), "verified", truth{"saved": 1}},
	{"a text of 500 KB", `<button onclick="done()">Save</button><p id=big></p><script>big.textContent="lorem ipsum ".repeat(42000)</script>`, also(`"deadline_ms":30000`), "verified", truth{"saved": 1}},
	{"a name of 1 MB beside it", `<button onclick="done()">Save</button><button id=b>x</button><script>b.setAttribute("aria-label","Save".repeat(250000))</script>`, "", "verified", truth{"saved": 1}},
	{"400 deep", `<div id=root></div><script>let e=root;for(let i=0;i<400;i++){const d=document.createElement("div");e.append(d);e=d}e.innerHTML="<button onclick=done()>Save</button>"</script>`, "", "verified", truth{"saved": 1}},
}
