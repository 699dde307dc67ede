// Package host defines the domain of Sluice: its documents (connections, connectors,
// grants, runs, schedules, questions …) and, as small interfaces, the services that act on
// them. It has no logic. The application (host/app) implements the services in this
// process, and the client (host/api/client) over HTTP. The command line, the pages and the
// API's routes use these interfaces only.
//
// A service validates its arguments. Its caller has already checked that the principal may
// call it.
package host

// Host is all services together; code that needs one takes that interface. All methods are
// safe for concurrent use. A *Refusal is for the caller to see, store.ErrNotFound means
// that the thing does not exist, and any other error is a fault of the host.
type Host interface {
	Runs         // start, branch, cancel, pause and resume runs
	Artifacts    // open files that runs left
	Files        // open files that records hold
	Questions    // answer what runs ask
	Connectors   // install, inspect and remove connectors
	Connections  // configure connectors
	Grants       // approve what connections may do
	Folders      // choose a directory to approve
	State        // reset cursors and attention marks
	Secrets      // set and remove secrets
	Schedules    // run connections automatically
	Backups      // copy everything into one file
	Queries      // query collected data with SQL
	Searcher     // full-text search
	Destinations // keep databases and files up to date with collected data
	Assistants   // let programs of third parties read some of the collected data
	System       // the host itself: information, readiness, audit log
	Views        // watch the browsers of runs
	Hosts        // manage the hosts that share a store
	// Authorizations obtains OAuth tokens for secrets.
	Authorizations
}
