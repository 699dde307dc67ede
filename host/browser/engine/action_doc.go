// Package action is the contract of verbs: what a guest may ask of a page, what it
// is told of the outcome, and the three versioned tables in between: effects
// (B50), failures (B88) and recoveries (B94). The adapter and the engine both
// compile it, and neither has a definition of its own (B5).
//
// It is pure. A request is a stranger's: Parse bounds and checks all of it before
// anything acts on it.
package engine
