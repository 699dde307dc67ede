// Package webhook sends changes of records to a server: signed batches, at least once.
//
// A server keeps no mark for a host, so the marks are in the store of the host
// (destination.Marks), and are moved after the server took a batch. A host that is killed
// between the two sends once more what changed in that range. A record carries its version,
// so a server that keeps of each key the highest one has everything and nothing twice.
//
// The server behind a URL is hostile. What it can do is what it can do to any webhook: see
// package host/webhook, which posts.
package webhook
