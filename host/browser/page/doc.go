// Package page is a web page as the host sees it: what one look at it shows, what
// can be done to it, and the errors of both. It is the contract between the driver,
// which talks to the browser, and those who act on pages (the engine), keep
// browsers (the surface) and show them (the view). It holds data and interfaces,
// the one list of keys, and no logic beyond them.
//
// Everything that comes out of it was written by the page: names, texts, roles,
// addresses and numbers are a stranger's, cut to the bounds that are stated here
// and nothing else. That an element says it is a button proves nothing.
package page
