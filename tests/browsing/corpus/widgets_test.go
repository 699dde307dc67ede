package corpus_test

import "strings"

// option is a click on an option of a list, which must leave its text in a field.
func option(name, field, text string) string {
	return `{"verb":"click","target":{"selector":{"role":"option","name":"` + name +
		`"}},"expect":{"kind":"text_value","target":{"selector":{"label":"` + field + `"}},"equals":"` + text + `"}}`
}

func press(name string) string {
	return `{"verb":"click","target":{"selector":{"role":"button","name":"` + name + `"}},`
}

// cities asks a slow server while the user types and shows what matches: the list is
// rebuilt with each answer and each move of the pointer, and closed when the field
// loses the focus.
const cities = `<label>City <input id=c role=combobox aria-controls=l aria-expanded=false autocomplete=off></label><ul id=l role=listbox style="width:200px"></ul><script>
	const all=["Berlin","Bern","Bergen","Paris"];let timer,on=-1,shown=[];
	const draw=()=>{l.innerHTML="";shown.forEach((s,i)=>{const o=document.createElement("li");o.role="option";o.textContent=s;if(i===on)o.style.background="#ddd";
		o.onmouseenter=()=>{if(on!==i){on=i;draw()}};o.onmousedown=e=>{e.preventDefault();tell("city",s);c.value=s;shown=[];draw()};l.append(o)});c.setAttribute("aria-expanded",shown.length>0)};
	c.oninput=()=>{clearTimeout(timer);timer=setTimeout(async()=>{const q=c.value;await fetch("/tell?key="+key+"&n=asked&after=1");if(q===c.value){shown=all.filter(s=>s.startsWith(q));draw()}},150)};
	c.onblur=()=>{shown=[];draw()};</script>`

// picker is a calendar of one month, with the last and first days of its neighbours,
// that is redrawn on each change.
const picker = `<label>Day <input id=d readonly></label><button aria-label="Choose date" onclick="pop.hidden=false;draw()">...</button><div id=pop role=dialog aria-label=Calendar hidden></div><script>
	let y=2026,m=3;const pad=n=>String(n).padStart(2,"0"),names=["January","February","March","April","May","June"];
	const draw=()=>{const first=new Date(Date.UTC(y,m,1)),from=new Date(first-((first.getUTCDay()+6)%7)*864e5);let h="<button aria-label='Previous month' onclick='m--;draw()'>&lt;</button><b id=month>"+names[m]+" "+y+"</b><button aria-label='Next month' onclick='m++;draw()'>&gt;</button><div role=grid style='display:grid;grid-template-columns:repeat(7,44px)'>";
		for(let i=0;i<42;i++){const t=new Date(+from+i*864e5),iso=t.toISOString().slice(0,10);h+="<button style='min-width:40px' data-day="+iso+(t.getUTCMonth()!==m?" disabled":"")+">"+t.getUTCDate()+"</button>"}pop.innerHTML=h+"</div>"};
	pop.onclick=e=>{const day=e.target.dataset.day;if(!day||e.target.disabled)return;tell("day",day);d.value=day;setTimeout(()=>pop.hidden=true,120)}</script>`

// drawn is a form that is rebuilt on each input, as by a library that keeps no keys:
// after each letter another element has the focus.
const drawn = `<div id=root></div><script>let text="";
	const draw=()=>{const had=document.activeElement&&document.activeElement.id==="f";root.innerHTML="<label>Name <input id=f></label><output>"+text.length+"</output><button id=go>Save</button>";
		const f=$("#f");f.value=text;if(had){f.focus();f.setSelectionRange(text.length,text.length)}f.oninput=()=>{text=f.value;tell("model",text);draw()};$("#go").onclick=()=>{tell("saved");say("Saved")}};draw()</script>`

// thumb is a custom slider that moves in steps, by pointer and by keys.
const thumb = `<div id=t role=slider aria-label=Level tabindex=0 aria-valuemin=0 aria-valuemax=200 aria-valuenow=20 style="position:absolute;top:150px;left:40px;width:22px;height:22px;border-radius:11px;background:#07c"></div>
	<div id=track style="position:absolute;top:158px;left:51px;width:400px;height:6px;background:#ccc;z-index:-1"></div><script>let v=20;
	const set=n=>{v=Math.max(0,Math.min(200,Math.round(n/5)*5));t.setAttribute("aria-valuenow",v);t.style.left=(40+v*2)+"px";tell("model",v)};set(20);
	t.onkeydown=e=>{const k={ArrowRight:5,ArrowLeft:-5,PageUp:25,PageDown:-25}[e.key];if(k)set(v+k);else if(e.key==="Home")set(0);else if(e.key==="End")set(200);else return;e.preventDefault()};
	t.onpointerdown=e=>{t.setPointerCapture(e.pointerId);t.onpointermove=e=>set((e.clientX-51)/2);t.onpointerup=()=>t.onpointermove=null}</script>`

// dragged is a custom slider that responds to the pointer only.
const dragged = `<div id=s role=slider aria-label=Level tabindex=0 aria-valuemin=0 aria-valuemax=100 aria-valuenow=10 style="position:relative;width:400px;height:24px;background:#eee"><div id=h style="position:absolute;width:16px;height:24px;background:#07c"></div></div><script>let v=10;
	const set=n=>{v=Math.max(0,Math.min(100,Math.round(n)));s.setAttribute("aria-valuenow",v);h.style.left=v*3.84+"px";tell("model",v)};set(10);
	const at=e=>set((e.clientX-s.getBoundingClientRect().left-8)/3.84);s.onmousedown=e=>{at(e);document.onmousemove=at;document.onmouseup=()=>document.onmousemove=document.onmouseup=null}</script>`

// pointed are the two thumbs of one slider, which respond to the pointer only and
// cannot pass each other.
const pointed = `<div id=track style="position:absolute;top:150px;left:40px;width:400px;height:6px;background:#ccc"></div><script>
	const v={Least:20,Most:80},all={};const draw=()=>{for(const k in v){all[k].style.left=(40+v[k]*4-10)+"px";all[k].setAttribute("aria-valuenow",v[k])}};
	for(const k in v){const t=all[k]=document.createElement("div");t.role="slider";t.tabIndex=0;t.setAttribute("aria-label",k);t.setAttribute("aria-valuemin",0);t.setAttribute("aria-valuemax",100);
		t.style.cssText="position:absolute;top:143px;width:20px;height:20px;border-radius:10px;background:#07c";document.body.append(t);
		t.onpointerdown=e=>{t.setPointerCapture(e.pointerId);const off=e.clientX-(50+v[k]*4-10);t.onpointermove=e=>{let n=Math.round((e.clientX-off-40)/4);n=k==="Least"?Math.max(0,Math.min(n,v.Most)):Math.min(100,Math.max(n,v.Least));if(n!==v[k]){v[k]=n;draw();tell(k,String(n))}};t.onpointerup=()=>t.onpointermove=null}}
	draw()</script>`

// upright is a vertical slider with its maximum at the top.
const upright = `<div style="position:absolute;top:60px;left:60px;width:6px;height:200px;background:#ccc"></div><div id=t role=slider aria-label=Volume aria-orientation=vertical tabindex=0 aria-valuemin=0 aria-valuemax=100 style="position:absolute;left:53px;width:20px;height:20px;background:#07c"></div><script>
	let v=10;const draw=()=>{t.style.top=(60+(100-v)*2-10)+"px";t.setAttribute("aria-valuenow",v)};draw();
	t.onpointerdown=e=>{t.setPointerCapture(e.pointerId);t.onpointermove=e=>{v=Math.max(0,Math.min(100,Math.round(100-(e.clientY-60)/2)));draw();tell("Volume",String(v))};t.onpointerup=()=>t.onpointermove=null}</script>`

// sorted is a card that follows the pointer, and a list that takes it.
const sorted = `<div id=card style="width:160px;height:30px;background:#ffd">Task</div><div id=to data-testid=done style="width:200px;height:100px;margin-top:40px;background:#eee"></div><script>
	card.onpointerdown=e=>{card.setPointerCapture(e.pointerId);const x=e.clientX,y=e.clientY;let moves=0;card.onpointermove=e=>{moves++;card.style.transform="translate("+(e.clientX-x)+"px,"+(e.clientY-y)+"px)"};
	card.onpointerup=e=>{card.onpointermove=null;const b=to.getBoundingClientRect();card.style.transform="";if(moves>2&&e.clientX>b.left&&e.clientX<b.right&&e.clientY>b.top&&e.clientY<b.bottom){to.append(card);done()}}}</script>`

// many is a custom list in which a click each selects several options.
const many = `<ul id=l role=listbox aria-label=Topics aria-multiselectable=true tabindex=0 style="width:200px">` +
	`<li role=option aria-selected=false>News</li><li role=option aria-selected=true>Music</li><li role=option aria-selected=true>Art</li><li role=option aria-selected=false>Sports</li></ul>` +
	`<script>l.onclick=e=>{const o=e.target.closest("[role=option]");if(o){o.setAttribute("aria-selected",o.getAttribute("aria-selected")!=="true");tell("chosen",[...l.children].filter(o=>o.getAttribute("aria-selected")==="true").map(o=>o.textContent).join(","))}}</script>`

// toggled is a switch that shows its new state at once, and the old one again when the
// server says no.
func toggled(path string) string {
	return `<button role=switch aria-checked=false aria-label=Alerts onclick="const on=this.getAttribute('aria-checked')!=='true';this.setAttribute('aria-checked',on);fetch('` + path + `',{method:'POST'}).then(r=>{if(!r.ok)throw 0}).catch(()=>this.setAttribute('aria-checked',!on))">A</button>`
}

// stepper is a number between two buttons, which reports its value with a delay.
const stepper = `<div role=group aria-label=Guests><button aria-label=Fewer onclick="set(n-1)">-</button><output id=o data-testid=count>1</output><button aria-label=More onclick="set(n+1)">+</button></div><script>let n=1;
	const set=v=>{n=Math.max(0,Math.min(4,v));tell("pressed");setTimeout(()=>o.textContent=n,80)}</script>`

func count(text string) string {
	return `"expect":{"kind":"text","target":{"selector":{"test_id":"count"}},"op":"equals","value":"` + text + `"}}`
}

// Widgets of present-day pages.
var widgets = []hazard{
	{"click that an ancestor hears",
		`<ul id=l><li class=row><span>First</span></li><li class=row><span>Save</span></li></ul><script>document.addEventListener("click",e=>{const r=e.target.closest(".row");if(r&&r.textContent==="Save")done()})</script>`,
		`{"verb":"click","target":{"selector":{"text":"Save"}},` + saved + `}`, "verified", truth{"saved": 1}},
	{"control that comes after its heading",
		`<h2>Save</h2><div id=root></div><script>document.addEventListener("click",()=>tell("heard"));setTimeout(()=>root.innerHTML="<button onclick=done()>Save</button>",700)</script>`,
		"{\"verb\":\"click\",\"target\":{\"selector\":{\"text\":\"Save\"}}," + saved + "}", "verified",
		truth{"saved": 1, "heard": 1}},
	{"click that a list hears",
		`<ul id=l><li class=row><span>First</span></li><li class=row><span>Save</span></li></ul><script>l.addEventListener("click",e=>{const r=e.target.closest(".row");if(r&&r.textContent==="Save")done()})</script>`,
		`{"verb":"click","target":{"selector":{"text":"Save"}},` + saved + `}`, "verified", truth{"saved": 1}},
	{"a place in a large map",
		`<div style="width:500px;height:300px;overflow:auto"><div id=map role=application aria-label=Map tabindex=0 style="width:3000px;height:2000px" onclick="tell('at',Math.round(event.offsetX)+','+Math.round(event.offsetY));say('Saved')"></div></div>`,
		`{"verb":"click","target":{"selector":{"label":"Map"}},"position":{"x":0.9,"y":0.8},` + saved + `}`, "verified",
		truth{"at": "2700,1600"}},
	{"a place in a page that is larger than its window",
		`<div id=map role=application aria-label=Map tabindex=0 style="width:3000px;height:4000px" onclick="tell('at',Math.round(event.offsetX)+','+Math.round(event.offsetY));say('Saved')"></div>`,
		`{"verb":"click","target":{"selector":{"label":"Map"}},"position":{"x":0.9,"y":0.8},` + saved + `}`, "verified",
		truth{"at": "2700,3200"}},
	{"slider of a thumb that hears the pointer alone", pointed,
		`{"verb":"adjust","target":{"selector":{"role":"slider","name":"Least"}},"value":35}`, "verified",
		truth{"Least": "35"}},
	{"the other thumb of two", pointed,
		`{"verb":"adjust","target":{"selector":{"role":"slider","name":"Most"}},"value":62}`, "verified",
		truth{"Most": "62"}},
	{"two thumbs, one after the other", pointed,
		`{"verb":"adjust","target":{"selector":{"role":"slider","name":"Most"}},"value":90}` + "\n" +
			`{"verb":"adjust","target":{"selector":{"role":"slider","name":"Least"}},"value":85}`, "verified",
		truth{"Most": "90", "Least": "85"}},
	{"thumb that stands upright", upright,
		`{"verb":"adjust","target":{"selector":{"role":"slider","name":"Volume"}},"value":75}`, "verified",
		truth{"Volume": "75"}},
	{"list of many, of which a click leaves one",
		strings.Replace(many, "const o=",
			"if(!event.ctrlKey)for(const c of l.children)c.setAttribute('aria-selected',false);const o=", 1),
		`{"verb":"select","target":{"selector":{"role":"listbox","name":"Topics"}},"options":[{"label":"Sports"},{"label":"Music"}]}`, "verified", truth{"chosen": "Music,Sports"}},
	{"list of many that takes its time",
		strings.NewReplacer("l.onclick=e=>{", "l.onclick=e=>setTimeout(()=>{", "}}</script>",
			"}},200)</script>").Replace(many),
		`{"verb":"select","target":{"selector":{"role":"listbox","name":"Topics"}},"options":[{"label":"Sports"},{"label":"Music"}]}`, "verified", truth{"chosen": "Music,Sports"}},
	{"dragged from list to list", sorted,
		`{"verb":"drag","target":{"selector":{"text":"Task"}},"to":{"selector":{"test_id":"done"}},` + saved + `}`,
		"verified", truth{"saved": 1}},
	{"dragged as files are",
		`<p id=a draggable=true ondragstart="event.dataTransfer.setData('text/plain','x')">Task</p><div data-testid=done style="width:200px;height:80px;background:#eee" ondragover="event.preventDefault()" ondrop="event.preventDefault();tell('dropped',event.dataTransfer.getData('text/plain'));done()"></div>`,
		`{"verb":"drag","target":{"selector":{"text":"Task"}},"to":{"selector":{"test_id":"done"}},` + saved + `}`,
		"verified", truth{"dropped": "x", "saved": 1}},
	{"dragged to what is below", `<div style="height:900px"></div>` + sorted + `<div style="height:900px"></div>`,
		`{"verb":"drag","target":{"selector":{"text":"Task"}},"to":{"selector":{"test_id":"done"}},` + saved + `}`,
		"verified", truth{"saved": 1}},
	{"dragged by so much", sorted, `{"verb":"drag","target":{"selector":{"text":"Task"}},"by":{"x":0,"y":90},` + saved +
		`}`, "verified", truth{"saved": 1}},
	{"dragged once nothing covers it",
		`<div id=o style="position:fixed;inset:0;background:#fff"></div><script>setTimeout(()=>o.remove(),1200)</script>` +
			sorted, `{"verb":"drag","target":{"selector":{"text":"Task"}},"to":{"selector":{"test_id":"done"}},` + saved + `}`,
		"verified", truth{"saved": 1}},
	{"slider whose pixels are worth nothing",
		`<div id=t role=slider aria-label=Level tabindex=0 aria-valuemin=0 aria-valuemax=100 aria-valuenow=0 style="width:20px;height:20px;background:#07c"></div><script>t.onpointerdown=()=>t.setAttribute("aria-valuenow","5e-324")</script>`,
		`{"verb":"adjust","target":{"selector":{"role":"slider"}},"value":50,"recovery":{"max_recovery_attempts":0}}`,
		"CONTROL_CONVERGENCE_FAILED", truth{}},
	{"dragged to nowhere", sorted,
		`{"verb":"drag","target":{"selector":{"text":"Task"}},"to":{"selector":{"test_id":"elsewhere"}},` + saved +
			`,"recovery":{"max_recovery_attempts":0}}`, "ACTION_REJECTED no_drop_target", truth{}},
	{"list of many", many, `{"verb":"select","target":{"selector":{"role":"listbox","name":"Topics"}},"options":[{"label":"Sports"},{"label":"Music"}]}`, "verified", truth{"chosen": "Music,Sports"}},
	{"a list that follows what is typed", cities, keys("City", "Ber") + "\n" + option("Bern", "City", "Bern"), "verified",
		truth{"asked": 1, "city": "Bern"}},
	{"and is filled in one step", cities, fill("City", "Be") + "\n" + option("Bergen", "City", "Bergen"), "verified",
		truth{"asked": 1, "city": "Bergen"}},
	{"and has no such entry", cities,
		fill("City", "Be") + "\n" +
			`{"verb":"click","target":{"selector":{"role":"option","name":"Oslo"}},"actionable_timeout_ms":600}`,
		"ELEMENT_NOT_FOUND", truth{"asked": 1}},
	{"a calendar", picker, press("Choose date") + `"expect":{"kind":"visible","target":{"selector":{"role":"dialog"}}}}` +
		"\n" +
		press("Next month") + `"expect":{"kind":"text","target":{"selector":{"css":"#month"}},"op":"equals","value":"May 2026"}}` + "\n" +
		`{"verb":"click","target":{"selector":{"css":"[data-day='2026-05-14']"}},"expect":{"kind":"text_value","target":{"selector":{"label":"Day"}},"equals":"2026-05-14"}}`, "verified", truth{"day": "2026-05-14"}},
	{"a day of the other month", picker,
		press("Choose date") + `"expect":{"kind":"visible","target":{"selector":{"role":"dialog"}}}}` + "\n" +
			`{"verb":"click","target":{"selector":{"css":"[data-day='2026-05-01']"}},"actionable_timeout_ms":400,"expect":{"kind":"text_value","target":{"selector":{"label":"Day"}},"equals":"2026-05-01"}}`, "ACTION_REJECTED disabled", truth{}},
	{"a form that is made anew on each letter", drawn, keys("Name", "Ada L"), "verified", truth{"model": "Ada L"}},
	{"and is filled in one step, then saved", drawn, fill("Name", "Ada") + "\n" + save, "verified",
		truth{"model": "Ada", "saved": 1}},
	{"a thumb", thumb, adjust("Level", 120), "verified", truth{"model": "120"}},
	{"a thumb between two steps", thumb, adjust("Level", 122), "CONTROL_CONVERGENCE_FAILED", nil},
	{"a thumb that hears no keys", dragged, adjust("Level", 73), "verified", truth{"model": "73"}},
	{"a switch, and a server that takes its time", toggled("/post/KEY?after=900ms"),
		`{"verb":"check","target":{"selector":{"role":"switch","name":"Alerts"}},"checked":true}`, "verified",
		truth{"posted": 1}},
	{"a switch that the server refuses", toggled("/fails/KEY?after=300ms"),
		`{"verb":"check","target":{"selector":{"role":"switch","name":"Alerts"}},"checked":true,"recovery":{"max_recovery_attempts":0}}`, "VERIFICATION_FAILED", truth{"posted": 1}},
	{"a switch that the server refuses late", toggled("/fails/KEY?after=2500ms"),
		`{"verb":"check","target":{"selector":{"role":"switch","name":"Alerts"}},"checked":true,"recovery":{"max_recovery_attempts":0}}`, "VERIFICATION_FAILED", truth{"posted": 1}},
	{"shown at once, refused late",
		`<button onclick="say('Saved');fetch('/fails/KEY?after=2500ms',{method:'POST'}).then(r=>r.ok||say('idle'))">Save</button>`, "", "VERIFICATION_FAILED", truth{"posted": 1}},
	{"shown at once, taken late",
		`<button onclick="say('Saved');fetch('/post/KEY?after=2500ms',{method:'POST'}).then(r=>r.ok||say('idle'))">Save</button>`, "", "verified", truth{"posted": 1}},
	{"shown at once, never answered",
		`<button onclick="say('Saved');fetch('/never/KEY',{method:'POST'}).then(r=>r.ok||say('idle'))">Save</button>`, "",
		"verified", truth{"asked": 1}},
	{"a number between two buttons", stepper, press("More") + count("2") + "\n" + press("More") + count("3"), "verified",
		truth{"pressed": 2}},
	{"at its end", stepper, press("Fewer") + count("0") + "\n" + press("Fewer") + count("-1"), "VERIFICATION_FAILED",
		truth{"pressed": 2}},
	{"a form, and a redirect that takes its time",
		`<form method=post action="/moves/KEY?after=1500ms"><label>Mail <input name=m></label><button>Save</button></form>`,
		fill("Mail", "a@b.test") + "\n" + save, "verified", truth{"posted": 1}},
	{"a form that is sent by Enter",
		`<form method=post action="/moves/KEY?after=300ms"><label>Mail <input name=m></label></form>`,
		fill("Mail", "a@b.test") + "\n" + `{"verb":"press","keys":"Enter","target":{"selector":{"label":"Mail"}},` + saved +
			`}`, "verified", truth{"posted": 1}},
	{"a form that is sent once",
		`<form id=f><label>Mail <input name=m></label><button>Save</button></form><script>f.onsubmit=e=>{e.preventDefault();const b=$("button");if(b.disabled)return;b.disabled=true;fetch("/post/KEY?after=1300ms",{method:"POST"}).then(()=>say("Saved"))}</script>`, fill("Mail", "a@b.test") + "\n" + save, "verified", truth{"posted": 1}},
	{"a list that is sorted as one clicks", `<ul id=l></ul><script>let rows=["Save","Send","Sell"];const draw=()=>{l.innerHTML="";for(const r of rows){const b=document.createElement("button");b.textContent=r;b.onclick=()=>{tell("row",r);say(r==="Save"?"Saved":"wrong")};l.append(b)}};draw();
		const i=setInterval(()=>{rows.push(rows.shift());draw()},90);setTimeout(()=>clearInterval(i),2500)</script>`, "", "verified", truth{"row": "Save"}},
	{"rows whose elements are used again", `<div id=v role=group aria-label=Rows style="height:200px;width:300px;overflow:auto;position:relative"><div style="height:8000px"></div></div><script>const pool=[];for(let i=0;i<7;i++){const b=document.createElement("button");b.style.cssText="position:absolute;left:0;width:200px";b.onclick=()=>{tell("row",b.textContent);say("Saved")};v.append(b);pool.push(b)}
		const draw=()=>{const from=Math.floor(v.scrollTop/40);pool.forEach((b,i)=>{const n=from+i;b.textContent="Row "+n;b.style.top=n*40+"px"})};draw();v.onscroll=()=>setTimeout(draw,30)</script>`,
		`{"verb":"scroll","target":{"selector":{"role":"button","name":"Row 42"}},"within":{"selector":{"role":"group","name":"Rows"}},"max_scrolls":20}` + "\n" + `{"verb":"click","target":{"selector":{"role":"button","name":"Row 42"}},` + saved + `}`, "verified", truth{"row": "Row 42"}},
	{"a menu that another click closes", `<button aria-haspopup=menu aria-expanded=false aria-label=More id=m onclick="event.stopPropagation();open_(true)">More</button><div id=p role=menu hidden><button role=menuitem onclick="tell('saved');say('Saved');open_(false)">Save</button></div><script>
		const open_=on=>{p.hidden=!on;m.setAttribute("aria-expanded",on)};document.addEventListener("click",()=>open_(false));</script>`,
		press("More") + `"expect":{"kind":"expanded","target":{"selector":{"role":"button","name":"More"}},"equals":true}}` +
			"\n" + `{"verb":"click","target":{"selector":{"role":"menuitem","name":"Save"}},` + saved + `}`,
		"verified", truth{"saved": 1}},
	{"listeners in a shadow tree",
		`<x-save></x-save><script>customElements.define("x-save",class extends HTMLElement{connectedCallback(){const r=this.attachShadow({mode:"open"});r.innerHTML="<div class=box>Save</div>";r.firstChild.addEventListener("click",()=>{tell("saved");say("Saved")})}})</script>`,
		`{"verb":"click","target":{"selector":{"text":"Save"}},` + saved + `}`, "verified", truth{"saved": 1}},
	{"an alert as the page is left",
		`<a href="/post/KEY" onclick="setTimeout(()=>0)">Save</a><script>addEventListener("pagehide",()=>alert("bye"));addEventListener("unload",()=>alert("bye"))</script>`, `{"verb":"click","target":{"selector":{"role":"link","name":"Save"}},` + saved + `}`, "verified", truth{}},
	{"an alert while the next page is awaited",
		`<a href="/post/KEY?after=600ms" onclick="setTimeout(()=>alert('wait'),200)">Save</a>`,
		`{"verb":"click","target":{"selector":{"role":"link","name":"Save"}},` + saved + `}`, "verified", truth{}},
}
