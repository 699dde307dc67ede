// Package site is a small made-up bank: the demonstration site of the portal
// connector. It has what scripts stumble over on web pages: a form that appears
// late, a notice that covers it and fades, a one-time code, a slider, a list box
// made of divs, a panel that is rebuilt all the time, an order that costs money
// each time it is placed, and a statement in pages whose rows load while scrolling.
//
// It counts what really happened, so that tests can compare it with what a
// connector was told (GET /truth).
package site
