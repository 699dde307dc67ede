// Package sandbox is the host's side of the boundary to guests. It checks the
// structure of modules, keeps the cache of compiled code, starts and stops the
// worker processes in which guests run, carries their calls, and accounts for
// what they used.
//
// It holds no policy about what a guest may do: [Guest] delivers calls as they were sent,
// and its user answers them. It enforces the wire protocol: a worker may be under its
// guest's control, so every message is bounded before it is read, and one that a correct
// worker would not send ends it.
//
// It trusts the kernel, the host's own executable and the jail of host/jail; not modules,
// not workers, and not its own cache until it is verified.
// verified them.
package sandbox
