// Package observe says what an observation of a page means: who is meant by a
// target, how sure that is, whether a predicate holds, what a snapshot shows, and
// which element an id stands for.
//
// It is pure: the same observations give the same answers. It has no clock, does no
// I/O and starts nothing. What it reads was written by the page (B14), so nothing
// that it concludes is a permission: the engine asks the page once more before it
// acts (B132, B134).
package engine
