package vault

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// suffix is the suffix of a secret's file.
const suffix = ".age"

// Host takes the place of a connection for the host's own secrets. No connection can have this id.
const Host = "_host"

// CheckNames refuses names that could lead outside the directory of a connection or of Host. The
// error wraps ErrInvalid.
func CheckNames(connection, name string) error {
	if !isOwner(connection) {
		return fmt.Errorf("connection %q, want ^[a-z0-9][a-z0-9_-]{0,63}$: %w",
			abi.Cut(abi.Clean(connection), 80), ErrInvalid)
	}
	if !isName(name) {
		return fmt.Errorf("secret name %q, want ^[A-Za-z0-9_.-]{1,64}$ and more than dots: %w",
			abi.Cut(abi.Clean(name), 80), ErrInvalid)
	}
	return nil
}

func isOwner(connection string) bool { return connection == Host || abi.IsSlug(connection) }

// isName reports whether a manifest may use s as a name of a secret, and it is not only dots.
func isName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return strings.Trim(s, ".") != "" && len(s) <= 64
}

// nameOf returns the name of a secret from that of its file.
func nameOf(file string) (string, bool) {
	name, ok := strings.CutSuffix(file, suffix)
	return name, ok && isName(name)
}
