//go:build !unix

package files

import (
	"context"
	"os"
)

// lock does nothing where there is no lock of whole files; what the manifest says of its
// owner still keeps processes apart.
func lock(context.Context, *os.File) error { return nil }

// syncDir does nothing where directories cannot be synced.
func syncDir(*os.Root, string) error { return nil }
