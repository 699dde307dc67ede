// Package site is a small bank that nobody has: the demonstration site of the
// portal connector. It has what web pages have and scripts stumble over: a form
// that comes late, a notice that covers it and fades, a code that is asked for, a
// slider, a list box made of divs, a panel that is built anew all the time, an
// order that costs money each time it is given, and a statement in pages whose
// rows load as one scrolls.
//
// It counts what really happened, so that tests can compare it with what a
// connector was told (GET /truth).
package site
