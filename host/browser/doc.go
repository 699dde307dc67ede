// Package browser is the browser binding of a run: it decodes and checks what a
// guest asks for, refuses what may not be, and hands the rest to the engine or to
// the surface it belongs to (B4). It wires the rooms below it into one Host.
//
// It owns what is between a guest and a page: the verbs of one run one at a time
// (B6), their rate, the stream handles of pictures and downloads, the sealed values
// that a page may be given and their handles in everything that comes back (B38,
// B39), and the lease of the owner (B222).
//
// Trust: a guest's request is a stranger's and so is all that a page says. What the
// manifest asks for was approved by the owner and is given by the caller; nothing a
// guest sends widens it. No address of a process, a proxy or a file reaches a guest
// (B3): the cause of a failure goes to the host's log.
package browser
