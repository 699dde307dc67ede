package corpus_test

import "strings"

var longText = strings.Repeat("All work and no play. ", 2000)

// react controls a field as that library does: it notes each value that a script sets,
// reports only values that it has not noted, and restores its own state at once.
const react = `<script>const control=(e,fix,late)=>{const p=Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e),"value");let noted=e.value,state=e.value;
	Object.defineProperty(e,"value",{get(){return p.get.call(e)},set(v){noted=""+v;p.set.call(e,v)}});
	const back=()=>{e.value=state};
	e.addEventListener(e.tagName=="SELECT"?"change":"input",()=>{const v=p.get.call(e);if(e.tagName!="SELECT"&&v===noted)return;noted=v;const n=fix?fix(v,state):v;const set=()=>{state=n;back();tell("model",state)};late?(back(),setTimeout(set,late)):set()})}</script>`

// Fields that a library controls, each in its own way.
var frameworks = []hazard{
	{"controlled field", react + `<label>Mail <input id=f></label><script>control(f)</script>`, fill("Mail", "a@b.test"),
		"verified", truth{"model": "a@b.test"}},
	{"controlled field, by keys", react + `<label>Mail <input id=f></label><script>control(f)</script>`,
		keys("Mail", "a@b.test"), "verified", truth{"model": "a@b.test"}},
	{"controlled field that was not empty",
		react + `<label>Mail <input id=f value=old></label><script>control(f)</script>`, fill("Mail", "new"), "verified",
		truth{"model": "new"}},
	{"controlled field set on the next tick",
		react + `<label>Mail <input id=f></label><script>control(f,null,30)</script>`, fill("Mail", "a@b.test"), "verified",
		truth{"model": "a@b.test"}},
	{"controlled field that refuses", react + `<label>Mail <input id=f></label><script>control(f,(v,old)=>old)</script>`,
		fill("Mail", "a@b.test"), "VERIFICATION_FAILED", truth{"model": ""}},
	{"controlled select", react +
		`<label>Theme <select id=f><option value=l>Light<option value=d>Dark</select></label><script>control(f)</script>`,
		choose("Theme", "Dark"), "verified", truth{"model": "d"}},
	{"controlled range", react +
		`<label>Volume <input type=range min=0 max=100 value=10 id=f></label><script>control(f)</script>`,
		adjust("Volume", 64), "verified", truth{"model": "64"}},
	{"controlled date", react + `<label>Day <input type=date id=f></label><script>control(f)</script>`,
		fill("Day", "2026-04-30"), "verified", truth{"model": "2026-04-30"}},
	{"controlled number", react +
		`<label>Count <input type=number min=0 max=9 value=1 id=f></label><script>control(f)</script>`, adjust("Count", 4),
		"verified", truth{"model": "4"}},
	{"capitals", react + `<label>Code <input id=f></label><script>control(f,v=>v.toUpperCase())</script>`,
		fill("Code", "abc"), "VERIFICATION_FAILED", truth{"model": "ABC"}},
	{"capitals that are expected",
		react + `<label>Code <input id=f></label><script>control(f,v=>v.toUpperCase())</script>`,
		`{"verb":"fill","target":{"selector":{"label":"Code"}},"value":{"plain":"abc"},"expect":{"kind":"text_value","target":{"selector":{"label":"Code"}},"equals":"ABC"}}`, "verified", truth{"model": "ABC"}},
	{"masked field", `<label>Phone <input id=f></label><script>f.oninput=()=>{const d=f.value.replace(/\D/g,"").slice(0,9);f.value=d.replace(/(\d{3})(?=\d)/g,"$1 ");tell("model",f.value)}</script>`,
		`{"verb":"type","mode":"keys","target":{"selector":{"label":"Phone"}},"value":{"plain":"123456789"},"expect":{"kind":"text_value","target":{"selector":{"label":"Phone"}},"equals":"123 456 789"}}`, "verified", truth{"model": "123 456 789"}},
	{"kept on change alone", `<label>Mail <input onchange="tell('model',this.value)"></label>`,
		fill("Mail", "x") + "\n" +
			`{"verb":"press","keys":"Tab","expect":{"kind":"focused","target":{"selector":{"label":"Mail"}},"equals":false}}`,
		"verified", truth{"model": "x"}},
	{"kept on beforeinput", `<div contenteditable role=textbox aria-label=Note id=f style="border:1px solid;min-height:30px"></div><script>let m="";f.addEventListener("beforeinput",e=>{e.preventDefault();if(e.inputType=="insertText"||e.inputType=="insertReplacementText")m=getSelection().isCollapsed?m+e.data:e.data;else if(e.inputType.startsWith("delete"))m="";f.textContent=m;getSelection().selectAllChildren(f);getSelection().collapseToEnd();tell("model",m)})</script>`,
		fill("Note", "hello"), "verified", truth{"model": "hello"}},
	{"drawn anew on each key",
		`<div id=root></div><script>let m="";const draw=()=>{root.innerHTML="<label>Mail <input></label>";const i=$("input");i.value=m;i.oninput=()=>{m=i.value;tell("model",m);draw();$("input").focus()}};draw()</script>`,
		fill("Mail", "a@b.test"), "verified", truth{"model": "a@b.test"}},
	{"drawn anew on focus", `<div id=root></div><script>let m="",n=0;const draw=()=>{root.innerHTML="<label>Mail <input></label>";const i=$("input");i.value=m;i.oninput=()=>{m=i.value;tell("model",m)};i.onfocus=()=>{if(n++<1){draw();$("input").focus()}}};draw()</script>`,
		fill("Mail", "a@b.test"), "verified", truth{"model": "a@b.test"}},
	{"tick with its state elsewhere",
		`<label><input type=checkbox id=c>Terms</label><script>let s=false;c.onclick=e=>{e.preventDefault();s=!s;setTimeout(()=>{c.checked=s;tell("model",s)})}</script>`, tick("Terms", true), "verified", truth{"model": "true"}},
	{"heard on the document",
		`<button class=x>Save</button><script>document.addEventListener("click",e=>e.target.closest(".x")&&done())</script>`,
		"", "verified", truth{"saved": 1}},
	{"heard on pointerdown", `<button onpointerdown="done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"heard on pointerdown, and gone", `<button onpointerdown="done();this.remove()">Save</button>`, "",
		"verified", truth{"saved": 1}},
	{"heard only if it was hovered long",
		`<button id=b>Save</button><script>let at=0;b.onpointerenter=()=>at=performance.now();b.onclick=()=>at?done():say("robot")</script>`, "", "verified", truth{"saved": 1}},
	{"hears only what a person did",
		`<button id=b>Save</button><script>b.addEventListener("click",e=>e.isTrusted&&e.detail===1&&(e.screenX||e.screenY)&&e.pointerType==="mouse"?done():say("robot"))</script>`, "", "verified", truth{"saved": 1}},
	{"two clicks are one", `<button ondblclick="done()">Save</button>`, also(`"count":2`), "verified", truth{"saved": 1}},
}
