//go:build !unix

package files

import (
	"context"
	"os"
)

// lock does nothing on systems without locks of whole files. The owner in the manifest still keeps processes apart.
func lock(context.Context, *os.File) error { return nil }

// syncDir does nothing on systems that cannot sync directories.
func syncDir(*os.Root, string) error { return nil }
