// Package app assembles a host from its packages: store, sandbox, runs and the rest. Commands and end-to-end
// tests open the same Host. Policy belongs to the packages, not here.
package app
