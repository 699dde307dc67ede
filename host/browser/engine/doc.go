// Package engine works a page for a guest: it reads the request, resolves which
// element is meant, acts, proves that the change which was asked for came about,
// recovers where a second try does no harm, and writes down every step.
//
// Three layers share the package:
//
//   - The contract: [Parse] bounds and checks a guest's request, [Result] is what the
//     guest is told, and three versioned tables lie in between: effects, failures and
//     recoveries.
//   - One look at a page ([Look], [Scene]): who is meant by a target and how sure that
//     is, whether a predicate holds, what a snapshot shows, and which element an id
//     stands for. The same observations always give the same answers.
//   - [Engine], which acts. It alone decides about the recovery of an action and about
//     its budgets.
//
// The first two are pure: no clock, no I/O, no goroutine.
//
// Invariant: an action that is not idempotent and has a side effect reaches the
// browser at most once, whatever breaks. act.dispatch is the only place that sends
// anything to a page, and act.mayDispatch is the only gate of it.
//
// Trust: a request is a stranger's, and so is everything that a page shows. Nothing a
// page shows is believed for its own sake: an action succeeded when its delta was seen
// to come about, in several fresh reads, and the page is asked once more before
// anything is sent to it.
//
// See docs/spec/browser.md, "How an action runs".
package engine
