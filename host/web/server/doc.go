// Package server is the server: the sockets, what is asked of an exposed one,
// who is let in first, and the end. What it serves is mounted on it.
//
// It listens on loopback and on a socket in the data directory. Another address
// needs a setting that says so, and TLS (S103). There is no way in without a
// credential: a key, the owner's session, or the socket, whose file mode is one.
package server
