// Package stream carries a run's log to whoever follows it: event streams,
// polls, lists, and any other response that stays open (run-api.md section 8).
// It knows no web framework: a stream is a function that writes to a
// bufio.Writer until its client has gone.
//
// Nothing is queued for anybody. A subscriber has a cursor, a wake-up channel
// of capacity one, and reads what it has not seen (A132): from the newest
// events, which all followers of a run share, or behind them from the store.
// Slow readers delay nobody and miss nothing.
//
// A Hub is made once per process. It is closed before the server is shut down,
// since open streams count as busy connections (A20, S105).
package stream
