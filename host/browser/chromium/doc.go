// Package driver is the only room that talks to a browser: it finds one, starts it,
// keeps it, notices its end, and does in its tabs what [page.Tab] and [page.Screen]
// say. Nothing else of the host imports a DevTools library (B4), and nothing of that
// protocol leaves here: no session, no target, no pid, no path (B3).
//
// A browser is a process group of its own under a uid of its own, with its sandbox
// on, an environment of six variables, and two pipes as the one way to command it
// (B175 to B177). Its network is what the caller gives it: a proxy's address and,
// with [Options.Wrap], a namespace.
//
// The room trusts the kernel, the browser's main process to keep to the protocol's
// form, and its caller to hold the profile's lock. It trusts no page, no renderer
// and nothing that was written by one: what comes out of a browser is bounded,
// copied and checked here, or passed on as a stranger's.
package chromium
