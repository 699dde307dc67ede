// Package chromium is the only room that talks to a browser: it finds one, starts it,
// keeps it, notices its end, does in its tabs what [page.Tab] and [page.Screen] say,
// and owns its only way out to the network. Nothing else of the host imports a DevTools
// library, and nothing of that protocol leaves here: no session, no target, no pid, no
// path.
//
// A browser is a process group of its own under a uid of its own, with its sandbox on,
// an environment of six variables, and two pipes as the one way to command it.
//
// A [Gate] is the forward proxy of one browser. The browser's flags and, where the
// machine has them, a network namespace leave it no other way. The gate decides nothing
// itself: host/network judges, resolves and dials hosts, ports and addresses, under the
// policy of the guest's own requests. The gate adds that an allowed connection carries
// what it was allowed for: it reads the server name of TLS, and lets nothing but TLS or
// a WebSocket through a tunnel. It never opens TLS.
//
// The package trusts the kernel, the browser's main process to keep to the protocol's
// form, and its caller to hold the profile's lock. It trusts no page, no renderer, no
// server and nothing that one of them wrote: what comes out of a browser is bounded,
// copied and checked here, or passed on as a stranger's.
//
// See docs/spec/browser.md, "Egress of the browser".
package chromium
