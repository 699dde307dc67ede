// Package host says what Sluice is about: its documents (connections, connectors,
// grants, runs, schedules, questions …) and the services that act on them, as small
// interfaces. It has no logic. The application (host/app) implements the services in
// this process, the client (host/api/client) over HTTP; the command line, the pages
// and the API's routes hold these interfaces and nothing else.
//
// A service checks what it is given. Whether the principal may ask for it is checked
// by the room that let them in.
package host

// Host is all services at once. Who needs one of them takes that interface. All methods may
// be called concurrently. An error that is a *Refusal is for the caller to see,
// store.ErrNotFound means that there is no such thing, and any other is a fault of the host.
type Host interface {
	Runs         // start, branch, cancel, pause and resume runs
	Artifacts    // files that runs left
	Files        // files that records hold
	Questions    // answer what runs ask
	Connectors   // install, inspect and remove connectors
	Connections  // configure connectors
	Grants       // approve what connections may do
	Folders      // look for a directory to approve
	State        // cursors and marks that runs leave behind
	Secrets      // set and remove secrets
	Schedules    // run connections automatically
	Backups      // copy everything into one file
	Queries      // ask with SQL about what was collected
	Searcher     // find records by their words
	Destinations // keep databases and files up to date with what was collected
	Assistants   // let programs of others read a part of what was collected
	System       // the host itself: information, readiness, audit log
	Views        // look at the browsers of runs
	Hosts        // the hosts that share a store
	// Authorizations have servers give out tokens for secrets.
	Authorizations
}
