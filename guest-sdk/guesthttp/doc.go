// Package guesthttp is net/http over the network binding: client libraries that take an
// *http.Client or an http.RoundTripper work unchanged inside a guest.
//
//	func collect(ctx context.Context, run *guest.Run) error {
//		client := github.NewClient(guesthttp.Client(run))
//		…
//	}
//
// The host resolves, checks, connects, speaks TLS, limits the rate and keeps cookies. A
// refusal by the host is a *guest.Error inside the *url.Error of net/http:
//
//	errors.Is(err, abi.EDENIED)                 // the host, a header, … is not granted
//	e, ok := errors.AsType[*guest.Error](err)   // e.Code, e.Detail, such as retry_after_ms
//
// The package trusts its host and is no security boundary: the host checks everything
// again, including each redirect as a request of its own.
//
// Importing net/http makes a wasm module larger, from about 3 MB to 11 MB and more, and
// slower to compile and load. A connector that needs no such library should use Run.Fetch.
package guesthttp
