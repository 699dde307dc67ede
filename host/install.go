package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// Install stores a checked module under its digest, compiles it, and lists the
// connector (S138, S37). Nothing is granted by installing. Replacing a newer
// version, or the same version by another module, needs force (S141).
func (h *Host) Install(ctx context.Context, l *Loaded, force bool) error {
	if err := h.room(); err != nil {
		return err
	}
	if !force {
		if err := h.suspicious(ctx, l.Connector); err != nil {
			return err
		}
	}
	if _, err := h.Sandbox.Prepare(ctx, l.Module, l.Wasm); err != nil {
		return prepareRefusal(err)
	}
	if err := h.keepModule(l); err != nil {
		return err
	}
	l.Connector.InstalledAt = time.Now()
	return h.Store.PutConnector(ctx, l.Connector)
}

// ErrSuspicious: installing this needs the owner's second look (S141).
var ErrSuspicious = errors.New("needs confirmation")

// suspicious refuses what an attacker who swaps modules would do: an older
// version, the same version with another module, a name that looks like
// another's.
func (h *Host) suspicious(ctx context.Context, c store.Connector) error {
	all, err := h.Store.Connectors(ctx)
	if err != nil {
		return fmt.Errorf("list connectors: %w", err)
	}
	for _, old := range all {
		order := compareVersions(c.Version, old.Version)
		var why string
		switch {
		case old.Bundled || old.ID == c.ID && old.Digest == c.Digest:
			continue
		case old.ID == c.ID && order < 0:
			why = fmt.Sprintf("%s %s is installed; %s is older", old.Name, old.Version, c.Version)
		case old.ID == c.ID && order == 0:
			why = fmt.Sprintf("%s %s is installed with another module under the same version", old.Name, old.Version)
		case old.ID != c.ID && skeleton(string(old.ID)) == skeleton(string(c.ID)):
			why = fmt.Sprintf("%s looks like the installed %s but is another connector", c.ID, old.ID)
		default:
			continue
		}
		return refusal("connector_invalid", fmt.Errorf("%s: %w; use --force if you mean it", why, ErrSuspicious))
	}
	return nil
}

func (h *Host) modulePath(d store.Digest) string {
	return filepath.Join(h.DataDir, "modules", strings.TrimPrefix(string(d), "sha256:")+".wasm")
}

// keepModule writes the module's bytes under their digest, once.
func (h *Host) keepModule(l *Loaded) error {
	if h.DataDir == "" {
		return refusal("connector_invalid", errors.New("a memory: store keeps no modules; install into badger:DIR"))
	}
	path := h.modulePath(l.Connector.Digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep module: %w", err)
	}
	err := writeWhole(path, l.Wasm, 0o400)
	if err == nil {
		err = syncDir(h.DataDir) // the directory may be new
	}
	if err != nil {
		return fmt.Errorf("keep module: %w", err)
	}
	return nil
}

// Uninstall takes a connector off the list. Its connections and data stay.
func (h *Host) Uninstall(ctx context.Context, name string) error {
	c, ok, err := h.connector(ctx, name, false)
	if err != nil {
		return err
	}
	if !ok {
		return refusal("connector_not_runnable", fmt.Errorf("no connector %s is installed", name))
	}
	return h.Store.DeleteConnector(ctx, c.ID, c.Bundled)
}

// connector looks a name up as R17 does: the id, the name derived from it.
// Installed comes before bundled.
func (h *Host) connector(ctx context.Context, key string, bundled bool) (store.Connector, bool, error) {
	all, err := h.Store.Connectors(ctx)
	if err != nil {
		return store.Connector{}, false, fmt.Errorf("list connectors: %w", err)
	}
	for _, k := range []string{key, abi.SlugOf(key)} {
		for _, c := range all {
			if c.Bundled == bundled && (string(c.ID) == k || c.Name == k) {
				return c, true, nil
			}
		}
	}
	return store.Connector{}, false, nil
}

// installed loads a connector from the data directory (R17, R18): installed
// ones before bundled ones.
func (h *Host) installed(ctx context.Context, name, sidecar string) (*Loaded, error) {
	for _, bundled := range []bool{false, true} {
		c, ok, err := h.connector(ctx, name, bundled)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		wasm, err := readModule(h.modulePath(c.Digest), h.Options.Module)
		if err != nil {
			return nil, err
		}
		l, err := h.check(wasm, sidecar)
		if err != nil {
			return nil, err
		}
		if store.Digest(l.Module.Digest) != c.Digest {
			return nil, refusal("connector_not_runnable", fmt.Errorf("the stored module of %s has digest %s, not %s; install it again", name, l.Module.Digest, c.Digest))
		}
		return l, nil
	}
	return nil, refusal("connector_not_runnable", fmt.Errorf("no connector %s is installed; sluice connectors lists those that are", name))
}

func prepareRefusal(err error) error {
	var f *sandbox.Failure
	if errors.As(err, &f) {
		return refusal(f.Code, err)
	}
	return refusal("connector_not_runnable", err)
}

// compareVersions orders dotted versions by number where both parts are
// numbers, else by text.
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
