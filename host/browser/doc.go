// Package browser is the browser binding of a run: it decodes and checks what a guest
// asks for, refuses what may not be, and hands the rest to the engine or to the surface
// it belongs to. It wires the rooms below it into one [Host].
//
// It owns what is between a guest and a page: the verbs of one run one at a time, their
// rate, the stream handles of pictures and downloads, the sealed values that a page may
// be given and their handles in everything that comes back, the lease of the owner, and
// the trace of a run: an archive of everything its browser went through, which the
// owner can open and step through. A trace that cannot be kept is a code in a progress
// message, never the end of a run.
//
// Trust: a guest's request is a stranger's and so is all that a page says; lines of a
// trace are bounded, its page makes no markup of them, and its snapshots hold no value.
// What the manifest asks for was approved by the owner and is given by the caller;
// nothing a guest sends widens it. No address of a process, a proxy or a file reaches a
// guest: the cause of a failure goes to the host's log.
//
// See docs/spec/browser.md.
package browser
