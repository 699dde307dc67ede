//go:build !unix

package backup

import (
	"context"
	"io/fs"
	"os"
)

// lock does nothing where no store in a directory can be opened.
func lock(context.Context, *os.File) error { return nil }

// private reports whether a file is a directory, where files have no modes.
func private(fi fs.FileInfo) bool { return fi.IsDir() }
