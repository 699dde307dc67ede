// Package controller has the active runs of a process: it admits them, performs
// each in a goroutine of its own, finds them by id for who wants to cancel, pause
// or resume one, ends them when the host stops, and closes those that nobody
// performs any more.
//
// It knows neither modules nor connections: what is to be run comes from a
// function, ready to go.
package controller
