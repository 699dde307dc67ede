// Package engine works a page for a guest: it resolves who is meant, acts, proves
// that the change which was asked for came about, recovers where a second try does
// no harm, and writes down every step (sections 3 and 4, 5.5 to 5.7 of the browser
// spec). It is the sole owner of an action's recovery state and of its budgets (B4,
// B102).
//
// Invariant: an action that is not idempotent and has a side effect reaches the
// browser at most once, whatever breaks (B96). act.dispatch is the only place that
// sends anything to a page, and the only gate of it is act.mayDispatch.
//
// Nothing that a page shows is believed for its own sake: success is the delta of
// the action, seen to come about, in several fresh reads (B14, B55, B67).
package engine
