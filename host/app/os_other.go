//go:build !unix

package app

import "io/fs"

// ownedByUs is not known where files carry access lists.
func ownedByUs(fs.FileInfo) bool { return true }

// restrictUmask does nothing where files carry access lists instead of modes.
func restrictUmask() {}
