//go:build !unix

package app

import "io/fs"

// ownedByUs always reports true, since ownership is unknown where files have access lists.
func ownedByUs(fs.FileInfo) bool { return true }

// restrictUmask does nothing where files have access lists instead of modes.
func restrictUmask() {}
