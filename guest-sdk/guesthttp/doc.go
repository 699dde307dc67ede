// Package guesthttp is net/http over the network binding:
// a client library that takes an *http.Client or an http.RoundTripper works
// unchanged inside a guest.
//
//	func collect(ctx context.Context, run *guest.Run) error {
//		client := github.NewClient(guesthttp.Client(run))
//		…
//	}
//
// The host resolves, checks, connects, speaks TLS, governs the rate and keeps
// the cookies; what it refuses comes back as a *guest.Error inside of the
// *url.Error of net/http:
//
//	errors.Is(err, abi.EDENIED)                 // the host, a header, … is not granted
//	e, ok := errors.AsType[*guest.Error](err)   // e.Code, e.Detail, such as retry_after_ms
//
// The package trusts its host (as the SDK does) and is no boundary: whatever
// it lets through the host checks again, each redirect as a request of its own.
//
// Importing net/http makes a wasm module larger, from about 3 MB to 11 MB and
// more, and slower to compile and to load. A connector that needs no such library
// is better off with Run.Fetch.
package guesthttp
