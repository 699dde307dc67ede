//go:build !unix

package files

import "os"

// syncDir does nothing on systems that cannot sync directories.
func syncDir(*os.Root, string) error { return nil }
