package corpus_test

const (
	innerSave  = `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"expect":{"kind":"exists","target":{"selector":{"text":"Saved"}}}}`
	mail       = `{"verb":"fill","target":{"selector":{"label":"Mail"}},"value":{"plain":"a@b.test"}}`
	shadowMail = `<label>Mail <input oninput=\"tell('model',this.value)\"></label>`
)

// Frames, shadow trees and what changes within them.
var places = []hazard{
	{"frame of this site", `<iframe src="/inner/KEY" style="width:400px;height:200px"></iframe>`, innerSave,
		"verified", truth{"saved": 1}},
	{"frame of another site", `<iframe src="OTHER/inner/KEY" style="width:400px;height:200px"></iframe>`, innerSave,
		"verified", truth{"saved": 1}},
	{"frame far below", `<div style="height:2500px"></div><iframe src="OTHER/inner/KEY" style="width:400px;height:200px"></iframe>`, innerSave, "verified", truth{"saved": 1}},
	{"frame that is scaled",
		`<iframe src="/inner/KEY" style="width:400px;height:200px;transform:scale(.6);transform-origin:0 0;border:13px solid"></iframe>`, innerSave, "verified", truth{"saved": 1}},
	{"foreign frame, scaled",
		`<iframe src="OTHER/inner/KEY" style="width:400px;height:200px;transform:scale(.6);transform-origin:0 0;border:13px solid"></iframe>`, innerSave, "verified", truth{"saved": 1}},
	{"frame that is covered",
		`<iframe src="OTHER/inner/KEY" style="width:400px;height:200px"></iframe><div style="position:fixed;inset:0" onclick="tell('stolen')"></div>`,
		innerSave[:len(innerSave)-1] + `,"actionable_timeout_ms":300}`, "ACTION_REJECTED obscured", truth{}},
	{"frame made late", `<div id=root></div><script>setTimeout(()=>root.innerHTML="<iframe src='OTHER/inner/KEY' style='width:400px;height:200px'></iframe>",500)</script>`, innerSave, "verified", truth{"saved": 1}},
	{"srcdoc", `<iframe srcdoc="<button onclick=&quot;parent.done()&quot;>Save</button>"></iframe>`, "",
		"verified", truth{"saved": 1}},
	{"frame goes with the click",
		`<iframe id=f srcdoc="<button onclick=&quot;parent.done();parent.$('#f').remove()&quot;>Save</button>"></iframe>`, "",
		"verified", truth{"saved": 1}},
	{"shadow tree", `<div id=host></div><script>host.attachShadow({mode:"open"}).innerHTML="<button onclick=done()>Save</button>"</script>`, "", "verified", truth{"saved": 1}},
	{"shadow in shadow", `<div id=host></div><script>const r=host.attachShadow({mode:"open"});r.innerHTML="<section><div id=in></div></section>";r.querySelector("#in").attachShadow({mode:"open"}).innerHTML="<button onclick=done()>Save</button>"</script>`, "", "verified", truth{"saved": 1}},
	{"slotted", `<div id=host><button onclick="done()">Save</button></div><script>host.attachShadow({mode:"open"}).innerHTML="<p><slot></slot></p>"</script>`, "", "verified", truth{"saved": 1}},
	{"field in a shadow tree", `<div id=host></div><script>host.attachShadow({mode:"open"}).innerHTML="` + shadowMail +
		`"</script>`, mail, "verified", truth{"model": "a@b.test"}},
	{"field in a foreign frame",
		`<iframe src="OTHER/page/KEY?inner" style="width:400px;height:200px"></iframe><p id=x></p><script>if(parent!=self){document.body.innerHTML="` + shadowMail + `"}</script>`, mail, "verified", truth{"model": "a@b.test"}},
	{"custom element", `<x-save></x-save><script>customElements.define("x-save",class extends HTMLElement{connectedCallback(){const r=this.attachShadow({mode:"open"});r.innerHTML="<button><slot></slot>Save</button>";r.firstChild.onclick=done}})</script>`, "", "verified", truth{"saved": 1}},
}

// Names that are meant to be mistaken.
var names = []hazard{
	{"two of a name", `<button onclick="done()">Save</button><button onclick="tell('other')">Save</button>`,
		also(`"actionable_timeout_ms":300`), "AMBIGUOUS_TARGET", truth{}},
	{"one of them hidden", `<button hidden onclick="tell('other')">Save</button><button onclick="done()">Save</button>`,
		"", "verified", truth{"saved": 1}},
	{"one of them without size",
		`<button style="position:absolute;width:0;height:0;min-width:0;padding:0;border:0;overflow:hidden" onclick="tell('other')">Save</button><button onclick="done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"index", `<button onclick="tell('other')">Save</button><button onclick="done()">Save</button>`,
		`{"verb":"click","target":{"selector":{"role":"button","name":"Save","index":1}},` + saved + `}`,
		"verified", truth{"saved": 1}},
	{"within", `<div id=one><button onclick="tell('other')">Save</button></div><div id=two><button onclick="done()">Save</button></div>`,
		`{"verb":"click","target":{"selector":{"role":"button","name":"Save","within":{"selector":{"id":"two"}}}},` + saved +
			`}`, "verified", truth{"saved": 1}},
	{"one id twice", `<button id=go onclick="done()">Save</button><button id=go onclick="tell('other')">Other</button>`,
		`{"verb":"click","target":{"selector":{"id":"go"}},"actionable_timeout_ms":300,` + saved + `}`,
		"AMBIGUOUS_TARGET", truth{}},
	{"longer name", `<button onclick="tell('other')">Save as</button><button onclick="done()">Save</button><button onclick="tell('other')">Don't save</button>`, "", "verified", truth{"saved": 1}},
	{"look-alike beside it",
		"<button onclick=\"tell('other')\">S\u0430ve</button><button onclick=\"done()\">Save</button>", "",
		"verified", truth{"saved": 1}},
	{"look-alike alone", "<button onclick=\"tell('other')\">S\u0430ve</button>", also(`"actionable_timeout_ms":300`),
		"ELEMENT_NOT_FOUND", truth{}},
	{"turned around", "<button onclick=\"tell('other')\">\u202eevaS</button>", also(`"actionable_timeout_ms":300`),
		"ELEMENT_NOT_FOUND", truth{}},
	{"spaces and case", "<button onclick=\"done()\">\n  SAVE\u00a0 \n</button>", "", "verified", truth{"saved": 1}},
	{"a text that is no button", `<div>Save</div>`, also(`"actionable_timeout_ms":300`), "ELEMENT_NOT_FOUND", truth{}},
	{"a label of nothing", `<label for=nowhere>Mail</label><p>x</p>`,
		`{"verb":"fill","target":{"selector":{"label":"Mail"}},"actionable_timeout_ms":300,"value":{"plain":"x"}}`,
		"ELEMENT_NOT_FOUND", truth{}},
	{"labelled by another", `<span id=l>Save</span><button aria-labelledby=l onclick="done()">x</button>`, "",
		"verified", truth{"saved": 1}},
	{"labelled by itself in a ring", `<button id=r aria-labelledby=r onclick="done()">Save</button>`, "",
		"verified", truth{"saved": 1}},
	{"renamed as it is hit",
		`<button onclick="done()" id=b>Save</button><script>b.onmousemove=()=>b.textContent="Delete"</script>`, "",
		"verified", truth{"saved": 1}},
	{"hostile attributes", `<button onclick="done()" data-testid='"]&#10;<script>' title='${x}' aria-description='\u0000&#0;'>Save</button>`, "", "verified", truth{"saved": 1}},
	{"id that is code", `<button onclick="done()" id="a'b&quot;]{}*">Save</button>`,
		`{"verb":"click","target":{"selector":{"id":"a'b\"]{}*"}},` + saved + `}`, "verified", truth{"saved": 1}},
	{"css that is none", `<button onclick="done()">Save</button>`,
		`{"verb":"click","target":{"selector":{"css":"::::"}},"actionable_timeout_ms":300,` + saved + `}`,
		"INVALID_SELECTOR", truth{}},
	{"names that shadow the page's own",
		`<form name=body><input name=children><input name=tagName><input name=parentNode><input name=getAttribute><button type=button onclick="done()" name=getBoundingClientRect>Save</button></form>`, "", "verified", truth{"saved": 1}},
}
