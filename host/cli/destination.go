package cli

import (
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
)

// destinations reads NAME=ORIGIN: where the owner lets a secret go besides the
// servers that the manifest names (R157).
func destinations(m *abi.Manifest, args []string) (map[string][]abi.Destination, error) {
	var out map[string][]abi.Destination
	for _, a := range args {
		name, origin, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return nil, usagef("--secret-to: want NAME=ORIGIN, as in password=https://dav.example.org")
		}
		to, err := app.OwnerDestinations(m, name, origin)
		if err != nil {
			return nil, usagef("--secret-to %s: %w", abi.Clean(name), err)
		}
		if out == nil {
			out = map[string][]abi.Destination{}
		}
		out[name] = append(out[name], to...)
	}
	return out, nil
}
