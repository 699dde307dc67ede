// Package web is how HTTP is spoken here: which requests are let in, in which
// order they are checked (A28), how bodies, parameters and cursors are read, and
// how answers and refusals look. Routes live in host/api and dashboard;
// they are added to an App with what they need, and get requests that have
// passed.
//
// Everything a request holds is hostile, and everything that a *fiber.Ctx returns
// is a view of a buffer that the next request overwrites (A15, S106). What this
// package returns is copied; what a handler takes from the Ctx itself is not.
//
// Fiber's BodyParser, Format, Hostname, Protocol, IP, session, csrf, cache, proxy
// and timeout functions are not used (S96, S107), here or in routes.
package web
