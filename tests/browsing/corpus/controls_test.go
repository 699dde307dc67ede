package corpus_test

import "fmt"

// fill, choose, tick and adjust are requests for the control with a label.
func fill(label, text string) string {
	return fmt.Sprintf(`{"verb":"fill","target":{"selector":{"label":%q}},"value":{"plain":%q}}`, label, text)
}

func keys(label, text string) string {
	return fmt.Sprintf(`{"verb":"type","mode":"keys","target":{"selector":{"label":%q}},"value":{"plain":%q}}`, label,
		text)
}

func choose(label, option string) string {
	return fmt.Sprintf(`{"verb":"select","target":{"selector":{"label":%q}},"option":{"label":%q}}`, label, option)
}

func tick(label string, on bool) string {
	return fmt.Sprintf(`{"verb":"check","target":{"selector":{"label":%q}},"checked":%v}`, label, on)
}

func adjust(label string, value float64) string {
	return fmt.Sprintf(`{"verb":"adjust","target":{"selector":{"label":%q}},"value":%g,"deadline_ms":20000}`, label, value)
}

// model reports the value that the page believes a control to hold.
const (
	model   = ` oninput="tell('model',this.value)"`
	changed = ` onchange="tell('model',this.value)"`
	listBox = `<div id=combo role=combobox aria-label=Colour aria-haspopup=listbox aria-expanded=false aria-controls=list tabindex=0 class=box style="background:#eee">Red</div>
		<ul id=list role=listbox hidden><li role=option id=o1>Red<li role=option id=o2>Blue<li role=option id=o3>Blue grey</ul>`
)

// controls are a browser's own controls and those that pages build for themselves.
var controls = []hazard{
	{"text", `<label>Mail <input` + model + `></label>`, fill("Mail", "a@b.test"), "verified", truth{"model": "a@b.test"}},
	{"text by keys", `<label>Mail <input` + model + `></label>`, keys("Mail", "a@b.test"), "verified",
		truth{"model": "a@b.test"}},
	{"text in all writings", `<label>Mail <input` + model + `></label>`, keys("Mail", "Ünï 漢字 🎉 שלום"),
		"verified", truth{"model": "Ünï 漢字 🎉 שלום"}},
	{"text that was there", `<label>Mail <input value="old text"` + model + `></label>`, keys("Mail", "new"), "verified",
		truth{"model": "new"}},
	{"clear", `<label>Mail <input value="old"` + model + `></label>`,
		`{"verb":"clear","target":{"selector":{"label":"Mail"}}}`, "verified", truth{"model": ""}},
	{"lines", `<label>Note <textarea` + model + `></textarea></label>`, fill("Note", "one\ntwo\n\nthree"), "verified",
		truth{"model": "one\ntwo\n\nthree"}},
	{"lines by keys", `<label>Note <textarea` + model + `></textarea></label>`, keys("Note", "one\ntwo"), "verified",
		truth{"model": "one\ntwo"}},
	{"a long text", `<label>Note <textarea oninput="tell('length',this.value.length)"></textarea></label>`,
		fill("Note", longText), "verified", truth{"length": fmt.Sprint(len(longText))}},
	{"too long for the field", `<label>Mail <input maxlength=4` + model + `></label>`, fill("Mail", "abcdefgh"),
		"VERIFICATION_FAILED", truth{"model": "abcd"}},
	{"read only", `<label>Mail <input readonly value=x></label>`,
		`{"verb":"fill","target":{"selector":{"label":"Mail"}},"actionable_timeout_ms":300,"value":{"plain":"y"}}`,
		"ACTION_REJECTED readonly", truth{}},
	{"password", `<label>Word <input type=password` + model + `></label>`, fill("Word", "horse"), "verified",
		truth{"model": "horse"}},
	{"editable content", `<div contenteditable role=textbox aria-label=Note style="border:1px solid;min-height:40px" oninput="tell('model',this.innerText)"></div>`, fill("Note", "hello there"), "verified", truth{"model": "hello there"}},
	{"editable content, with lines",
		`<div contenteditable role=textbox aria-multiline=true aria-label=Note style="border:1px solid;min-height:40px"></div>`, fill("Note", "one\ntwo"), "verified", nil},
	{"editable content that had some",
		`<div contenteditable role=textbox aria-label=Note style="border:1px solid;min-height:40px" oninput="tell('model',this.innerText)"><b>old</b> <i>text</i></div>`, fill("Note", "new"), "verified", truth{"model": "new"}},
	{"number", `<label>Count <input type=number min=0 max=20 value=1` + model + `></label>`, adjust("Count", 7),
		"verified", truth{"model": "7"}},
	{"number, filled", `<label>Count <input type=number` + model + `></label>`, fill("Count", "12.5"), "verified",
		truth{"model": "12.5"}},
	{"number that is none", `<label>Count <input type=number></label>`, fill("Count", "twelve"),
		"VERIFICATION_FAILED", nil},
	{"date", `<label>Day <input type=date` + changed + `></label>`, fill("Day", "2026-04-30"), "verified",
		truth{"model": "2026-04-30"}},
	{"no date", `<label>Day <input type=date></label>`, fill("Day", "2026-02-31"), "VERIFICATION_FAILED", truth{}},
	{"time", `<label>At <input type=time` + changed + `></label>`, fill("At", "13:45"), "verified",
		truth{"model": "13:45"}},
	{"colour", `<label>Ink <input type=color` + changed + `></label>`, fill("Ink", "#3366ff"), "verified",
		truth{"model": "#3366ff"}},
	{"range", `<label>Volume <input type=range min=0 max=100 value=10` + model + `></label>`, adjust("Volume", 33),
		"verified", truth{"model": "33"}},
	{"range, right to left", `<label dir=rtl>Volume <input type=range min=0 max=100 value=10` + model + `></label>`,
		`{"verb":"adjust","target":{"selector":{"label":"Volume"}},"value":72,"modes":["gesture"]}`, "verified",
		truth{"model": "72"}},
	{"range with steps that do not fit", `<label>Volume <input type=range min=0 max=100 step=5 value=10` + model +
		`></label>`, adjust("Volume", 33), "CONTROL_CONVERGENCE_FAILED", nil},
	{"range of fractions", `<label>Gain <input type=range min=0 max=1 step=0.01 value=0.5` + model + `></label>`,
		adjust("Gain", 0.73), "verified", truth{"model": "0.73"}},
	{"slider that hears keys", `<div id=a role=slider aria-label=Volume tabindex=0 aria-valuemin=0 aria-valuemax=50 aria-valuenow=5 style="width:200px;height:20px;background:#ccc"></div>
		<script>a.onkeydown=e=>{const d={ArrowUp:1,ArrowRight:1,ArrowDown:-1,ArrowLeft:-1}[e.key];if(d){a.ariaValueNow=Math.min(50,Math.max(0,+a.ariaValueNow+d));tell("model",a.ariaValueNow)}}</script>`, adjust("Volume", 30), "verified", truth{"model": "30"}},
	{"slider that hears the pointer", `<div id=a role=slider aria-label=Volume tabindex=0 aria-valuemin=0 aria-valuemax=100 aria-valuenow=5 style="width:216px;height:20px;background:#ccc"></div>
		<script>const set=e=>{a.ariaValueNow=Math.round(Math.min(100,Math.max(0,(e.clientX-a.getBoundingClientRect().x-8)/2)));tell("model",a.ariaValueNow)};a.onpointerdown=e=>{a.setPointerCapture(e.pointerId);set(e);a.onpointermove=set};a.onpointerup=()=>a.onpointermove=null</script>`,
		`{"verb":"adjust","target":{"selector":{"label":"Volume"}},"value":60,"tolerance":1,"deadline_ms":20000}`, "verified",
		nil},
	{"stepper", `<div role=spinbutton aria-label=Guests tabindex=0 aria-valuemin=0 aria-valuemax=9 aria-valuenow=2 id=a>2</div><script>a.onkeydown=e=>{const d={ArrowUp:1,ArrowDown:-1}[e.key];if(d){a.ariaValueNow=+a.ariaValueNow+d;a.textContent=a.ariaValueNow;tell("model",a.ariaValueNow)}}</script>`, adjust("Guests", 5), "verified", truth{"model": "5"}},
	{"select", `<label>Theme <select` + changed +
		`><option value=l>Light<optgroup label=More><option value=d>Dark</optgroup></select></label>`,
		choose("Theme", "Dark"), "verified", truth{"model": "d"}},
	{"select without such an option", `<label>Theme <select><option value=l>Light</select></label>`,
		choose("Theme", "Dark"), "ELEMENT_NOT_FOUND no_such_option", truth{}},
	{"select whose option is disabled", `<label>Theme <select><option value=l>Light<option disabled>Dark</select></label>`,
		choose("Theme", "Dark"), "ACTION_REJECTED disabled", truth{}},
	{"select of many", `<label>Theme <select multiple><option>Light<option>Dark</select></label>`, choose("Theme", "Dark"),
		"SEMANTIC_MISMATCH", truth{}},
	{"select filled late", `<label>Theme <select id=s` + changed +
		`><option value=l>Light</select></label><script>setTimeout(()=>s.add(new Option("Dark","d")),700)</script>`,
		choose("Theme", "Dark"), "verified", truth{"model": "d"}},
	{"list box that opens", listBox + `<script>
		combo.onclick=()=>{list.hidden=!list.hidden;combo.ariaExpanded=String(!list.hidden)};
		for(const o of list.children)o.onclick=()=>{combo.textContent=o.textContent;for(const x of list.children)x.ariaSelected=String(x==o);list.hidden=true;combo.ariaExpanded="false";tell("model",o.id)}</script>`, choose("Colour", "Blue"), "verified", truth{"model": "o2"}},
	{"list box that is made as it opens", `<button id=combo role=combobox aria-label=Colour aria-haspopup=listbox aria-expanded=false>Red</button><script>
		combo.onclick=()=>{if(window.list){list.remove();return}const l=document.createElement("div");l.id="list";l.role="listbox";combo.setAttribute("aria-controls","list");combo.ariaExpanded="true";
		for(const c of ["Red","Blue"]){const o=document.createElement("div");o.role="option";o.textContent=c;o.onclick=()=>{combo.textContent=c;l.remove();combo.ariaExpanded="false";tell("model",c)};l.append(o)}setTimeout(()=>document.body.append(l),200)}</script>`, choose("Colour", "Blue"), "verified", truth{"model": "Blue"}},
	{"combobox with a filter", `<label>City <input id=combo role=combobox aria-controls=list aria-expanded=false autocomplete=off></label><ul id=list role=listbox hidden></ul><script>
		combo.oninput=()=>setTimeout(()=>{list.hidden=false;combo.ariaExpanded="true";list.innerHTML="";for(const c of ["Bern","Berlin","Bergen"])if(c.toLowerCase().includes(combo.value.toLowerCase())){const o=document.createElement("li");o.role="option";o.textContent=c;o.onclick=()=>{combo.value=c;list.hidden=true;combo.ariaExpanded="false";tell("model",c)};list.append(o)}},150)</script>`,
		keys("City", "berl") + "\n" +
			`{"verb":"click","target":{"selector":{"role":"option","name":"Berlin"}},"expect":{"kind":"text_value","target":{"selector":{"label":"City"}},"equals":"Berlin"}}`, "verified", truth{"model": "Berlin"}},
	{"radio", `<label><input type=radio name=r value=a checked` + changed +
		`>Card</label><label><input type=radio name=r value=b` + changed + `>Cash</label>`, tick("Cash", true), "verified",
		truth{"model": "b"}},
	{"tick", `<label><input type=checkbox onchange="tell('model',this.checked)">Terms</label>`, tick("Terms", true),
		"verified", truth{"model": "true"}},
	{"untick", `<label><input type=checkbox checked onchange="tell('model',this.checked)">Terms</label>`,
		tick("Terms", false), "verified", truth{"model": "false"}},
	{"tick that is hidden in its label",
		`<style>.t{position:absolute;opacity:0;width:0;height:0}.m{display:inline-block;width:20px;height:20px;border:1px solid}</style><label><input class=t type=checkbox onchange="tell('model',this.checked)"><span class=m></span> Terms</label>`, tick("Terms", true), "verified", truth{"model": "true"}},
	{"tick that is not displayed",
		`<label><input hidden type=checkbox onchange="tell('model',this.checked)"><span>Terms</span></label>`,
		tick("Terms", true), "verified", truth{"model": "true"}},
	{"tick of three states",
		`<label><input id=c type=checkbox onchange="tell('model',this.checked+' '+this.indeterminate)">All</label><script>c.indeterminate=true</script>`, tick("All", true), "verified", truth{"model": "true false"}},
	{"aria tick of three states",
		`<div role=checkbox tabindex=0 aria-checked=mixed id=c>All</div><script>c.onclick=()=>{c.ariaChecked=c.ariaChecked=="mixed"?"false":c.ariaChecked=="false"?"true":"false";tell("model",c.ariaChecked)}</script>`,
		`{"verb":"check","target":{"selector":{"role":"checkbox","name":"All"}},"checked":true}`, "verified",
		truth{"model": "true"}},
	{"tick whose label holds a link",
		`<label style="display:block;width:300px;text-align:center"><input type=checkbox onchange="tell('model',this.checked)"> I accept <a href="/inner/KEY">the terms of use of this</a></label>`,
		`{"verb":"check","target":{"selector":{"role":"checkbox"}},"checked":true}`, "verified", truth{"model": "true"}},
	{"switch", `<button role=switch aria-checked=false id=c aria-label=Wifi onclick="setTimeout(()=>{c.ariaChecked=String(c.ariaChecked!='true');tell('model',c.ariaChecked)},120)">o</button>`,
		`{"verb":"check","target":{"selector":{"role":"switch","name":"Wifi"}},"checked":true}`, "verified",
		truth{"model": "true"}},
	{"switch that is slow", `<button role=switch aria-checked=false id=c aria-label=Wifi onclick="tell('clicked');setTimeout(()=>c.ariaChecked=String(c.ariaChecked!='true'),1300)">o</button>`,
		`{"verb":"check","target":{"selector":{"role":"switch","name":"Wifi"}},"checked":true}`, "verified",
		truth{"clicked": 1}},
	{"tab", `<div role=tablist><button role=tab aria-selected=true>One</button><button role=tab aria-selected=false onclick="this.ariaSelected='true'">Two</button></div>`,
		`{"verb":"click","target":{"selector":{"role":"tab","name":"Two"}},"expect":{"kind":"selected","target":{"selector":{"role":"tab","name":"Two"}},"equals":true}}`, "verified", nil},
	{"details", `<details><summary>More</summary>text</details>`,
		`{"verb":"click","target":{"selector":{"text":"More"}},"expect":{"kind":"expanded","target":{"selector":{"text":"More"}},"equals":true}}`, "verified", nil},
	{"rows that are made as one scrolls", `<div id=rows role=group aria-label=Rows style="height:300px;overflow:auto;position:relative"><div style="height:40000px"></div></div><script>
		const draw=()=>{for(const e of [...rows.querySelectorAll("button")])e.remove();const from=Math.floor(rows.scrollTop/40);for(let i=from;i<from+9;i++){const b=document.createElement("button");b.textContent="Row "+i;b.style.cssText="position:absolute;left:0;top:"+i*40+"px";b.onclick=()=>{tell("row",i);say("Saved")};rows.append(b)}};draw();rows.onscroll=()=>requestAnimationFrame(draw)</script>`,
		`{"verb":"scroll","target":{"selector":{"role":"button","name":"Row 30"}},"within":{"selector":{"role":"group","name":"Rows"}}}` + "\n" + `{"verb":"click","target":{"selector":{"role":"button","name":"Row 30"}},` + saved + `}`, "verified", truth{"row": "30"}},
	{"a list without end", `<div id=rows></div><script>let n=0;const more=()=>{for(let i=0;i<20;i++)rows.insertAdjacentHTML("beforeend","<div style='height:60px'><button onclick='tell(\"row\",this.textContent);say(\"Saved\")'>Row "+ ++n+"</button></div>")};more();addEventListener("scroll",()=>{if(scrollY+innerHeight>document.body.scrollHeight-300)setTimeout(more,80)})</script>`,
		`{"verb":"scroll","target":{"selector":{"role":"button","name":"Row 55"}}}` + "\n" +
			`{"verb":"click","target":{"selector":{"role":"button","name":"Row 55"}},` + saved + `}`, "verified",
		truth{"row": "Row 55"}},
}
