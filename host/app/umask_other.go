//go:build !unix

package app

// restrictUmask does nothing where files carry access lists instead of modes.
func restrictUmask() {}
