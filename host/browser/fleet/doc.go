// Package fleet keeps browsers: which process serves which run, where its profile lies
// and who may open it, when it starts, lingers and ends, whether a session in it is
// live, and whether it is still there.
//
// It owns the slots, the profile directories with their locks and uids, and the one
// lease that a run has on a browser, its [Surface]. It starts no process itself: a
// [Starter] does, so the package is tested without one.
//
// Trust: names of profiles come from guests and are checked before anything is touched.
// What lies in a profile directory was written by a browser that a stranger's page may
// have taken over: it is never followed out of the directory, and nothing of it is
// read. A browser's own word that it is well counts for nothing beside its process, its
// pipe and a probe.
//
// See docs/spec/browser.md, "Life of a surface".
package fleet
