// Package sandbox is the host's side of the boundary to guests. It checks the
// structure of modules, keeps the cache of compiled code, starts and stops the
// worker processes in which guests run, carries their calls, and accounts for
// what they used.
//
// It holds no policy about what a guest may do: calls come out of a [Guest] as
// they were sent, and whoever runs it answers them. What it does decide is
// whether the other side still speaks the wire at all: a worker is taken to be
// in its guest's hands, so every message is bounded before it is read and any
// that an honest worker would not send ends it.
//
// It trusts the kernel, the host's own executable and the walls of host/jail;
// not modules, not workers, and not the bytes of its own cache until it has
// verified them.
package sandbox
