package vault

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// suffix ends the file name of a secret.
const suffix = ".age"

// Host is in the place of a connection for secrets of the host's own. No
// connection can be called that.
const Host = "_host"

// CheckNames refuses what could name anything but a file in the directory of a
// connection, or of Host. The error wraps ErrInvalid.
func CheckNames(connection, name string) error {
	if !isOwner(connection) {
		return fmt.Errorf("connection %q, want ^[a-z0-9][a-z0-9_-]{0,63}$: %w", abi.Cut(abi.Clean(connection), 80), ErrInvalid)
	}
	if !isName(name) {
		return fmt.Errorf("secret name %q, want ^[A-Za-z0-9_.-]{1,64}$ and more than dots: %w", abi.Cut(abi.Clean(name), 80), ErrInvalid)
	}
	return nil
}

func isOwner(connection string) bool { return connection == Host || abi.IsSlug(connection) }

// isName is what a manifest may call a secret, less the names of dots alone.
func isName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return strings.Trim(s, ".") != "" && len(s) <= 64
}

// nameOf reads a secret's name from that of its file.
func nameOf(file string) (string, bool) {
	name, ok := strings.CutSuffix(file, suffix)
	return name, ok && isName(name)
}
