// Package trace keeps what a browser went through in one run as an archive that
// its owner can open and step through (B163 to B165): every trace in order, what
// else happened between them, and, as far as there is room, a picture and a
// redacted list of elements after each action.
//
// It owns the directory of archives and the form of what is in them, and trusts
// nothing of it: all of it came from pages and guests, so lines are bounded, the
// page that shows them makes no markup of them, and snapshots lose every value
// (B40). Nothing here decides anything: a trace that cannot be kept is a code for
// a progress message, never the end of a run.
package browser
