package corpus_test

const (
	next    = `{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":%s}`
	dismiss = `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"on_dialog":"dismiss",` + saved + `}`
	accept  = `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"on_dialog":"accept",` + saved + `}`
)

// Forms and links with servers that are slow, lose requests or never end: posted is
// what the server counted.
var traffic = []hazard{
	{"form", `<form method=post action="/post/KEY"><button>Save</button></form>`, "", "verified", truth{"posted": 1}},
	{"form with a slow answer", `<form method=post action="/post/KEY?after=1500ms"><button>Save</button></form>`, "", "verified", truth{"posted": 1}},
	{"form with a very slow answer", `<form method=post action="/post/KEY?after=3s"><button>Save</button></form>`, "", "verified", truth{"posted": 1}},
	{"form whose answer is lost", `<form method=post action="/lost/KEY"><button>Save</button></form>`, "", "VERIFICATION_FAILED delta_target_absent", truth{"posted": 1}},
	{"form whose answer is lost late", `<form method=post action="/lost/KEY?after=600ms"><button>Save</button></form>`, "", "VERIFICATION_FAILED delta_target_absent", truth{"posted": 1}},
	{"form that fails", `<form method=post action="/fails/KEY"><button>Save</button></form>`, "", "VERIFICATION_FAILED delta_target_absent", truth{"posted": 1}},
	{"form sent with Enter", `<form method=post action="/post/KEY"><label>Mail <input name=m></label></form>`,
		`{"verb":"press","keys":"Enter","target":{"selector":{"label":"Mail"}},` + saved + `}`, "verified", truth{"posted": 1}},
	{"form sent with Enter, answer lost", `<form method=post action="/lost/KEY"><label>Mail <input name=m></label></form>`,
		`{"verb":"press","keys":"Enter","target":{"selector":{"label":"Mail"}},` + saved + `}`, "VERIFICATION_FAILED delta_target_absent", truth{"posted": 1}},
	{"request whose answer is lost", `<button onclick="fetch('/lost/KEY',{method:'POST'}).then(r=>r.ok&&say('Saved'))">Save</button>`, "", "VERIFICATION_FAILED", truth{"posted": 1}},
	{"request that is slow", `<button onclick="fetch('/post/KEY?after=700ms',{method:'POST'}).then(()=>say('Saved'))">Save</button>`, "", "verified", truth{"posted": 1}},
	{"optimistic, and right", `<button onclick="say('Saved');fetch('/post/KEY?after=300ms',{method:'POST'})">Save</button>`, "", "verified", truth{"posted": 1}},
	{"optimistic, and never answered", `<button onclick="say('Saved');fetch('/never/KEY',{method:'POST'})">Save</button>`, "", "verified", truth{"asked": 1}},
	{"link", `<a href="/inner/KEY">Next</a>`, `{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":{"kind":"navigation"}}`, "verified", truth{}},
	{"link to a part", `<a href="#part">Next</a>`, `{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":{"kind":"navigation","same_document":true}}`, "verified", truth{}},
	{"link within an application", `<a href="/next" onclick="event.preventDefault();history.pushState({},'','/next');say('Saved')">Next</a>`,
		`{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":{"all":[{"kind":"url","op":"contains","value":"/next"},{"kind":"text","target":` + status + `,"op":"equals","value":"Saved"}]}}`, "verified", truth{}},
	{"link that leads round", `<a href="/loop/KEY">Next</a>`, `{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":{"kind":"url","op":"contains","value":"/inner"},"deadline_ms":30000}`, "VERIFICATION_FAILED", truth{}},
	{"address that leads round", `x`, `{"verb":"navigate","url":"SITE/loop/KEY","deadline_ms":30000}`, "VERIFICATION_FAILED navigation_no_change", truth{}},
	{"address that is not allowed", `x`, `{"verb":"navigate","url":"http://elsewhere.test/"}`, "ACTION_REJECTED host_denied", truth{}},
	{"address of a file", `x`, `{"verb":"navigate","url":"file:///etc/passwd"}`, "ACTION_REJECTED scheme_denied", truth{}},
	{"link to where nobody may go", `<a href="http://elsewhere.test/">Next</a>`, `{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":{"kind":"navigation"}}`, "ACTION_REJECTED host_denied", truth{}},
	{"address that is never answered", `x`, `{"verb":"navigate","url":"SITE/never/KEY","deadline_ms":1500}`, "TIMEOUT", nil},
	{"page that sends itself on", `<button onclick="tell('saved');location='/inner/KEY'">Save</button>`, `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"expect":{"kind":"url","op":"contains","value":"/inner"}}`, "verified", truth{"saved": 1}},
	{"reload that is expected", `<button onclick="tell('saved');location.reload()">Save</button>`, `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"expect":{"kind":"navigation"}}`, "verified", truth{"saved": 1}},
	{"download", `<a href="/file/KEY" download>Next</a>`, `{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":{"kind":"download","name_matches":"^report\\.csv$"}}`, "verified", truth{"fetched": 1}},
	{"popup", `<button onclick="window.open('/inner/KEY');done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"six popups", `<button onclick="for(let i=0;i<6;i++)window.open('/inner/KEY');done()">Save</button>`, "", "verified", truth{"saved": 1}},
}

// Questions of a page's script.
var dialogs = []hazard{
	{"alert", `<button onclick="alert('Hi');done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"confirm, dismissed", `<button onclick="confirm('Sure?')?done():say('No')">Save</button>`, dismiss, "VERIFICATION_FAILED", truth{}},
	{"confirm, accepted", `<button onclick="confirm('Sure?')?done():say('No')">Save</button>`, accept, "verified", truth{"saved": 1}},
	{"prompt, dismissed", `<button onclick="prompt('Name?')===null?done():say('No')">Save</button>`, dismiss, "verified", truth{"saved": 1}},
	{"thirty alerts", `<button onclick="for(let i=0;i<30;i++)alert(i);done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"alerts on a clock", `<button onclick="done()">Save</button><script>let n=0;const i=setInterval(()=>{alert(1);n++>1&&clearInterval(i)},70)</script>`, "", "verified", truth{"saved": 1}},
	{"alert as the page loads", `<button onclick="done()">Save</button><script>setTimeout(()=>alert(1))</script>`, "", "verified", truth{"saved": 1}},
	{"alert on press", `<button onmousedown="alert(1)" onclick="done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"asks before it is left", `<input id=i><script>addEventListener("beforeunload",e=>{e.preventDefault()})</script>`,
		`{"verb":"fill","target":{"selector":{"id":"i"}},"value":{"plain":"x"}}` + "\n" + `{"verb":"navigate","url":"SITE/inner/KEY"}`, "verified", truth{}},
	{"print", `<button onclick="print();done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"full screen and pointer lock", `<button onclick="document.documentElement.requestFullscreen();document.body.requestPointerLock();done()">Save</button>`, "", "verified", truth{"saved": 1}},
	{"camera, place and notices", `<button onclick="navigator.mediaDevices&&navigator.mediaDevices.getUserMedia({video:true}).catch(()=>{});navigator.geolocation.getCurrentPosition(()=>tell('place'),()=>{});Notification.requestPermission();done()">Save</button>`, "", "verified", truth{"saved": 1}},
}
