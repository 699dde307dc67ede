package host

import "context"

// Folders lists directories of the host's machine for an owner who chooses what a connector
// may see. No key and no connector gets to it.
type Folders interface {
	// Folder is a directory by its absolute path, or one that begins with ~/; "" is the home
	// of who runs the host. The refusal is validation_error for "at".
	Folder(ctx context.Context, path string) (Folder, error)
}

// Folder is a directory and those in it.
type Folder struct {
	Path    string   // without links
	Parent  string   // "" at the top
	Names   []string // sorted, without links and hidden ones
	More    bool     // there are others
	Refused string   // why no owner can approve it, after "it"; "" for one that can be approved
}
