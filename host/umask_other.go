//go:build !unix

package host

// restrictUmask does nothing where files carry access lists instead of modes.
func restrictUmask() {}
