// Package host says what Sluice is about: its documents (connections, connectors,
// grants, runs, schedules, questions …) and the services that act on them, as small
// interfaces. It has no logic. The application (host/app) implements the services in
// this process, the client (host/api/client) over HTTP; the command line, the pages
// and the API's routes hold these interfaces and nothing else.
//
// A service checks what it is given. Whether the principal may ask for it is checked
// by the room that let them in.
package host
