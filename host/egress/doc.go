// Package egress is the only way from this host to the internet. It has the policy (which
// hosts an owner approved), the address table (which addresses are public), the client with
// its dials, redirects and limits, and the rate limiter: it is the security boundary for
// the network.
//
// It trusts nothing that guests, manifests, resolvers and servers say. A host has one
// canonical spelling; others are refused. That a name passed the policy says nothing about
// its addresses, and a resolver's answer says nothing about the address that is dialled:
// each is checked, and the check of the address about to be connected is final. An owner's
// approval holds for exactly the host and port that it names.
//
// It also records what a guest requested and received, and answers requests from a
// recording. Recordings are meant to be read and shared, so they contain no secrets; a
// recording that is read is untrusted.
package egress
