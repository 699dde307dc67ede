package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// suspicious returns why a module may be an attacker's replacement: it is older than the installed version,
// differs under the same version, or its connector could be mistaken for another one. A pinned connector is
// protected from lookalikes even after it was uninstalled.
func (in *installer) suspicious(ctx context.Context, c store.Connector) ([]string, error) {
	all, err := in.Store.Connectors(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connectors: %w", err)
	}
	pins, err := in.Store.Pins(ctx)
	if err != nil {
		return nil, fmt.Errorf("list pinned keys: %w", err)
	}
	var why []string
	for _, old := range all {
		switch order := compareVersions(c.Version, old.Version); {
		case old.ID != c.ID:
			why = appendNew(why, lookalike(c, old.ID, old.Name, "installed"))
		case old.Digest == c.Digest:
		case order < 0:
			why = append(why, fmt.Sprintf("%s %s is installed; %s is older", old.Name, old.Version, c.Version))
		case order == 0:
			why = append(why, fmt.Sprintf("%s %s is installed with another module under the same version",
				old.Name, old.Version))
		}
	}
	for _, p := range pins {
		listed := slices.ContainsFunc(all, func(old store.Connector) bool { return old.ID == p.ConnectorID })
		if !listed && p.ConnectorID != c.ID {
			why = appendNew(why, lookalike(c, p.ConnectorID, p.Name, "pinned"))
		}
	}
	return why, nil
}

// lookalike returns why c could be mistaken for a known connector, by its id or its name, "" if it could not.
func lookalike(c store.Connector, id store.ConnectorID, name, known string) string {
	switch {
	case skeleton(string(id)) == skeleton(string(c.ID)):
		return fmt.Sprintf("%s looks like the %s %s but is another connector", c.ID, known, id)
	case skeleton(name) == skeleton(c.Name):
		return fmt.Sprintf("%s would be called %s, which looks like the name of the %s %s", c.ID, c.Name, known, id)
	}
	return ""
}

func appendNew(why []string, reason string) []string {
	if reason == "" || slices.Contains(why, reason) {
		return why
	}
	return append(why, reason)
}

// compareVersions compares dotted versions part by part: by number if both parts are numbers, otherwise as text.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		var x, y string
		if i < len(as) {
			x = as[i]
		}
		if i < len(bs) {
			y = bs[i]
		}
		c := cmp.Compare(x, y)
		if isDigits(x) && isDigits(y) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			c = cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func isDigits(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}

// alike replaces characters and pairs that are easily mistaken for others, and removes separators.
var alike = strings.NewReplacer(
	"-", "", "_", "", ".", "", " ", "",
	"0", "o", "1", "l", "i", "l", "|", "l", "5", "s", "3", "e", "vv", "w", "rn", "m",
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x", "і", "l", "ѕ", "s", "ј", "j", "к",
	"k", "м", "m", "т", "t", "н", "h", "α", "a", "ο", "o", "ν", "v", "ι", "l", "κ", "k", "ρ", "p", "τ", "t",
	"υ", "u", "χ", "x", "ı", "l",
)

// skeleton reduces an id to a form without case, separators and look-alike letters. Ids with the same skeleton
// can be mistaken for each other.
func skeleton(id string) string { return alike.Replace(strings.ToLower(id)) }
