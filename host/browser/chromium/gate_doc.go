// Package egress is the only way out that a browser has. It owns the forward
// proxy of one surface, the flags and the network namespace that leave the
// browser nothing else, and the account of what was refused (browser.md section 8).
//
// It decides nothing itself: hosts, ports and addresses are judged, resolved and
// dialled by host/network, with the policy that the guest's requests are under
// (B237). What it adds is that a connection, once allowed, carries what it was
// allowed for: the server name of TLS is read, and nothing but TLS or a WebSocket
// passes through a tunnel (B240). TLS is never opened.
//
// It trusts the kernel and its caller. Whatever arrives at the proxy was written
// by a page, and whatever a server answers by a stranger.
package chromium
