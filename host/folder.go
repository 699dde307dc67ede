package host

import "context"

// Folders lists directories of the host's machine, for an owner who chooses what a
// connector may see. API keys and connectors have no access.
type Folders interface {
	// Folder takes an absolute path or one that begins with ~/; "" is the home of the
	// host's user. It refuses a bad path with validation_error for "at".
	Folder(ctx context.Context, path string) (Folder, error)
}

// Folder is a directory and its subdirectories.
type Folder struct {
	Path    string   // symbolic links resolved
	Parent  string   // "" at the top
	Names   []string // sorted, without symbolic links and hidden directories
	More    bool     // Names is incomplete
	Refused string   // why it cannot be approved, as a predicate of "it"; "" if it can
}
