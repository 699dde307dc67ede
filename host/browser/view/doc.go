// Package view is the owner's window on a browser: who may look and for how long, the
// picture, the lease of control, and what an owner does in it. It speaks messages over
// a [Conn] and knows neither HTTP nor WebSockets, and it reaches the page through
// page.Screen alone, never through the engine.
//
// A viewer's messages come from a browser that somebody may have tampered with: they
// are bounded, checked, counted, and do nothing without the lease. What comes from the
// page, its title, its dialogs, the names of its elements, is a stranger's and leaves
// as text with bounds. No token, picture or input is logged or kept.
//
// See docs/spec/browser.md, "Live view".
package view
