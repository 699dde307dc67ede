// Package network is how anything of this host reaches the internet. It owns
// the policy (which hosts an owner approved), the address table (which
// addresses are public), the client that dials, redirects, the caps on what
// comes back, and the governor of request rates: this package is the security
// boundary for the network.
//
// It trusts nothing that guests, manifests, resolvers and servers say. A host
// has one spelling here, and what has another is refused rather than guessed
// at. A name that passed the policy proves nothing about its addresses, and a
// resolver's answer nothing about the address that is dialled: each is judged
// by itself, and the last verdict, on the address about to be connected, is
// final. An owner's approval is trusted for the one host and port that it
// names, no wider.
//
// It also keeps what a guest asked for and saw as a recording, and answers from
// one. A recording is written for people to read and to share, so secrets are
// not in it; one that is read is a stranger's text.
package network
