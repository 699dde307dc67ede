package corpus_test

import "strings"

// anyChange is a click that expects any change of the page.
const anyChange = `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"expect":{"kind":"any_change"}}`

// Nothing on these pages may be verified, and nothing may be done twice.
var lies = []hazard{
	{"no-op button", `<button>Save</button>`, "", "VERIFICATION_FAILED", truth{}},
	{"wrong thing done", `<button onclick="tell('deleted');say('Deleted')">Save</button>`, "", "VERIFICATION_FAILED", truth{"deleted": 1}},
	{"wrong neighbour shows it", `<button onclick="tell('saved');$('#n').textContent='Saved'">Save</button><p id=n>idle</p>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"optimistic, taken back by the server", `<button onclick="say('Saved');fetch('/fails/KEY?after=300ms',{method:'POST'}).then(r=>r.ok||say('idle'))">Save</button>`,
		"", "VERIFICATION_FAILED", truth{"posted": 1}},
	{"optimistic, taken back when the answer is lost", `<button onclick="say('Saved');fetch('/lost/KEY?after=300ms',{method:'POST'}).then(r=>r.ok||say('idle'))">Save</button>`,
		"", "VERIFICATION_FAILED", truth{"posted": 1}},
	{"taken back by a clock", `<button onclick="done();setTimeout(()=>say('idle'),300)">Save</button>`,
		also(`"verify":{"stable_count":5}`), "VERIFICATION_FAILED", truth{"saved": 1}},
	{"a flash", `<button onclick="done();setTimeout(()=>say('idle'),60)">Save</button>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"true beforehand", `<button onclick="done()">Save</button><script>say("Saved")</script>`, "", "VERIFICATION_FAILED already_true_before", truth{}},
	{"true just before", `<button onmousemove="say('Saved')">Save</button>`, "", "verified", truth{}}, // the move is part of the click
	{"oscillation", `<button onclick="tell('saved');let n=0;setInterval(()=>say(n++%2?'Saved':'idle'),90)">Save</button>`, also(`"verify":{"stable_count":4},"recovery":{"max_recovery_attempts":1}`), "VERIFICATION_FAILED", truth{"saved": 1}},
	{"invisible proof", `<button onclick="tell('saved');$('#status').innerHTML='idle<span hidden>Saved</span>'">Save</button>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"proof of style", `<style>.s{font-size:0}.s::before{font-size:16px;content:"Saved"}</style><button onclick="$('#status').className='s'">Save</button>`, "", "VERIFICATION_FAILED", truth{}},
	{"proof goes with its element", `<button onclick="tell('saved');$('#status').remove()">Save</button>`, "", "VERIFICATION_FAILED delta_target_absent", truth{"saved": 1}},
	{"getters that lie", `<button onclick="tell('saved')">Save</button><script>for(const [p,k] of [[Node.prototype,"textContent"],[HTMLElement.prototype,"innerText"],[CharacterData.prototype,"data"],[Node.prototype,"nodeValue"]])
		Object.defineProperty(p,k,{get(){return "Saved"},set(){}});JSON.stringify=()=>'"Saved"';performance.now=()=>0;Date.now=()=>0;document.createTreeWalker=()=>{throw 1}</script>`,
		"", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"gone under the press", `<button onmousedown="tell('pressed');this.remove()">Save</button>`, "", "VERIFICATION_FAILED", truth{"pressed": 1}},
	{"clicked by the page, too", `<button onclick="tell(event.isTrusted?'trusted':'other')">Save</button><script>setTimeout(()=>$("button").click(),50)</script>`, "", "VERIFICATION_FAILED", truth{"trusted": 1, "other": 1}},
	{"wedged input", `<label>Mail <input oninput="tell('typed');this.value=''"></label>`, `{"verb":"fill","target":{"selector":{"label":"Mail"}},"value":{"plain":"a@b.test"}}`, "VERIFICATION_FAILED", nil},
	{"input wedged later", `<label>Mail <input oninput="setTimeout(()=>this.value='',50)"></label>`, `{"verb":"fill","target":{"selector":{"label":"Mail"}},"value":{"plain":"a@b.test"}}`, "VERIFICATION_FAILED", nil},
	{"box that unticks itself", `<label><input type=checkbox onchange="setTimeout(()=>this.checked=false)">Terms</label>`, `{"verb":"check","target":{"selector":{"label":"Terms"}},"checked":true}`, "VERIFICATION_FAILED", nil},
	{"select that falls back", `<label>Theme <select onchange="setTimeout(()=>this.value='l',40)"><option value=l>Light<option value=d>Dark</select></label>`, `{"verb":"select","target":{"selector":{"label":"Theme"}},"option":{"label":"Dark"}}`, "VERIFICATION_FAILED", nil},
	{"slider that falls back", `<label>Volume <input type=range min=0 max=100 value=10 oninput="setTimeout(()=>this.value=10,30)"></label>`, `{"verb":"adjust","target":{"selector":{"label":"Volume"}},"value":80}`, "CONTROL_CONVERGENCE_FAILED", nil},
	{"taken back by the answer to a question", `<button onclick="tell('saved');say('Saved');fetch('/fails/KEY?after=600ms').then(r=>r.ok||say('idle'))">Save</button>`,
		"", "VERIFICATION_FAILED", truth{"saved": 1, "posted": 1}},
	{"busy, and then not", `<button onclick="tell('saved');const s=$('#status');s.ariaBusy='true';say('Saved');setTimeout(()=>{s.ariaBusy='false';say('idle')},900)">Save</button>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"in a busy part, and then not", `<div id=d></div><button onclick="tell('saved');d.append($('#status'));d.ariaBusy='true';say('Saved');setTimeout(()=>{d.ariaBusy='false';say('idle')},900)">Save</button>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"fades in, and out again", `<button onclick="tell('saved');say('Saved');$('#status').animate([{opacity:.4},{opacity:1}],900).onfinish=()=>say('idle')">Save</button>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"slides by a transition, and back", `<style>#status{transition:transform 900ms}</style><button onclick="tell('saved');say('Saved');$('#status').style.transform='translateX(90px)';$('#status').ontransitionend=()=>say('idle')">Save</button>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
	{"counts, and then fails", `<button onclick="tell('saved');let n=0;const i=setInterval(()=>{say(n++<20?'Saved '+n+' of 20':'idle');n>20&&clearInterval(i)},45)">Save</button>`,
		strings.Replace(save, `"op":"equals"`, `"op":"contains"`, 1), "VERIFICATION_FAILED", truth{"saved": 1}},
	{"a clock is no change of a click", `<button onclick="tell('saved')">Save</button><p id=c></p><script>setInterval(()=>c.textContent=Math.random(),400)</script>`, anyChange, "VERIFICATION_FAILED changes_by_itself", truth{"saved": 1}},
	{"a clock with seconds is none", `<button onclick="tell('saved')">Save</button><p id=c></p><script>setInterval(()=>c.textContent=Math.random(),1000)</script>`, anyChange, "VERIFICATION_FAILED changes_by_itself", truth{"saved": 1}},
	{"any change is not the delta", `<button onclick="tell('saved');document.body.append('Saved')">Save</button>`, "", "VERIFICATION_FAILED", truth{"saved": 1}},
}
