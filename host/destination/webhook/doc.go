// Package webhook sends changes of records to a server in signed batches, at least once.
//
// A server stores no marks for a host, so the marks are in the store of the host (destination.Marks) and advance after
// the server has accepted a batch. If a host is killed in between, the changes are sent again. Records carry their
// versions, so a server that keeps the highest version of each key has everything exactly once.
//
// The server behind a URL is untrusted. It can do no more than any receiver of webhooks: see package host/webhook,
// which sends the requests.
package webhook
