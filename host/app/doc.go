// Package app wires the rooms into one process: store, sandbox, run. Commands
// and end-to-end tests open the same Host. There is no policy here; each room
// owns its own.
package app
