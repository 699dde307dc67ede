// Package telemetry measures the host: metrics for a monitoring system, and
// spans for a tracing one.
//
// Whoever reports calls a method, or is asked by a function when metrics are
// read; nobody waits for either. Labels are taken from short fixed lists, and
// anything else is counted as "other": no label holds a record, a message, a
// name that somebody chose, or an id. The same is true of spans but for the
// attributes of A251.
package telemetry
