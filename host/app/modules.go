package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// modules keeps the modules of connectors by their digest, and loads them from a file, a source directory,
// bytes, or the list of installed connectors.
type modules struct {
	*directory
	checked checkedModules
	last    atomic.Pointer[sandbox.Module] // what checkModule returned last; never modified
}

func (ms *modules) modulePath(d store.Digest) string {
	return filepath.Join(ms.DataDir, "modules", strings.TrimPrefix(string(d), "sha256:")+".wasm")
}

// keepModule stores the bytes of a module under their digest, in the data directory and for the other hosts that
// share the store.
func (ms *modules) keepModule(ctx context.Context, l *Loaded) error {
	if ms.DataDir == "" {
		return refusal("connector_invalid", errors.New("a memory: store keeps no modules; install into badger:DIR"))
	}
	if shared := store.ModulesOf(ms.Store); shared != nil {
		if err := shared.PutModule(ctx, l.Connector.Digest, l.Wasm); err != nil {
			return fmt.Errorf("keep module: %w", err)
		}
	}
	return ms.writeModule(l.Connector.Digest, l.Wasm)
}

// fetchModule fetches a module that another host installed. It does nothing if there is none.
func (ms *modules) fetchModule(ctx context.Context, d store.Digest) error {
	shared := store.ModulesOf(ms.Store)
	if shared == nil || ms.DataDir == "" {
		return nil
	}
	wasm, err := shared.Module(ctx, d)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("fetch module: %w", err)
	}
	if digestOf(wasm) != d || int64(len(wasm)) > ms.Options.Module.Effective().Bytes {
		return refusal("connector_not_runnable",
			fmt.Errorf("what the store keeps as module %s is another one; install the connector again", d))
	}
	return ms.writeModule(d, wasm)
}

func (ms *modules) writeModule(d store.Digest, wasm []byte) error {
	path := ms.modulePath(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep module: %w", err)
	}
	err := writeWhole(path, wasm, 0o400)
	if err == nil {
		err = syncDir(ms.DataDir) // the directory may be new
	}
	if err != nil {
		return fmt.Errorf("keep module: %w", err)
	}
	return nil
}

// connector finds a connector among the bundled or the installed ones, by the first of these that matches: id or
// name, the slug of key, then the further keys.
func (ms *modules) connector(ctx context.Context, key string, bundled bool,
	more ...string) (store.Connector, bool, error) {
	all, err := ms.Store.Connectors(ctx)
	if err != nil {
		return store.Connector{}, false, fmt.Errorf("list connectors: %w", err)
	}
	for _, k := range append([]string{key, abi.SlugOf(key)}, more...) {
		for _, c := range all {
			if k != "" && c.Bundled == bundled && (string(c.ID) == k || c.Name == k) {
				return c, true, nil
			}
		}
	}
	return store.Connector{}, false, nil
}

// installed loads a connector by name. If it is both installed and bundled, the one with the fingerprint of the
// sidecar is loaded, otherwise the installed one. If its module is missing or changed, the other one is loaded.
func (ms *modules) installed(ctx context.Context, name, sidecar string) (*Loaded, error) {
	var raw []byte
	var more []string
	var wanted string
	if sidecar != "" {
		var err error
		if raw, err = readSidecar(sidecar); err != nil {
			return nil, err
		}
		m, err := abi.ReadManifest(raw)
		if err != nil {
			return nil, manifestRefusal(err)
		}
		more, wanted = []string{m.ConnectorID, m.ConnectorKey}, fingerprint(m)
	}
	var found []store.Connector
	for _, bundled := range []bool{false, true} {
		c, ok, err := ms.connector(ctx, name, bundled, more...)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return nil, refusal("connector_not_runnable",
			fmt.Errorf("no connector %s is installed, and there is no file or directory of that name; sluice connectors lists what is installed", name))
	}
	if len(found) == 2 && hasFingerprint(found[1], wanted) && !hasFingerprint(found[0], wanted) {
		slices.Reverse(found)
	}
	l, err := ms.loadListed(ctx, found[0], raw)
	if err != nil && len(found) == 2 {
		if other, no := ms.loadListed(ctx, found[1], raw); no == nil {
			return other, nil
		}
	}
	return l, err
}

// fingerprint returns the version and the sorted stream names of a manifest.
func fingerprint(m *abi.Manifest) string {
	names := make([]string, len(m.Streams))
	for i, s := range m.Streams {
		names[i] = s.Name
	}
	slices.Sort(names)
	return fmt.Sprintf("%q %q", m.Version, names)
}

func hasFingerprint(c store.Connector, wanted string) bool {
	m, err := abi.ReadManifest(c.Manifest)
	return err == nil && fingerprint(m) == wanted
}

// LoadFor loads the module that the owner of a connection approved, or the installed one if that is not
// installed any more.
func (ms *modules) LoadFor(ctx context.Context, c store.Connection) (*Loaded, error) {
	all, err := ms.Store.Connectors(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connectors: %w", err)
	}
	for _, listed := range all { // installed ones come before bundled ones
		if listed.ID == c.ConnectorID && listed.Digest == c.Digest {
			return ms.loadListed(ctx, listed, nil)
		}
	}
	return ms.installed(ctx, string(c.ConnectorID), "")
}

// loadListed loads a module that the store lists. manifest replaces the one that it was installed with, nil for
// none.
func (ms *modules) loadListed(ctx context.Context, c store.Connector, manifest []byte) (*Loaded, error) {
	m, err := ms.checked.get(c.Digest, ms.modulePath(c.Digest), func() (*CheckedModule, error) {
		wasm, err := ms.openModule(ctx, c)
		if err != nil {
			return nil, err
		}
		return ms.checkModule(wasm)
	})
	if err != nil {
		return nil, err
	}
	if manifest == nil {
		manifest = c.Manifest
	}
	l, err := loaded(m, manifest)
	if err != nil {
		return nil, err
	}
	l.Connector.Bundled, l.Connector.Signer, l.Connector.Conformance = c.Bundled, c.Signer, c.Conformance
	return l, nil
}

// moduleMissing reports whether the file of a module is missing or has another size. Its content is verified
// when it is opened, and then a module that another host may have installed is fetched.
func (ms *modules) moduleMissing(k store.Connector) bool {
	if !isDigest(string(k.Digest)) {
		return true
	}
	fi, err := os.Stat(ms.modulePath(k.Digest))
	return errors.Is(err, fs.ErrNotExist) && store.ModulesOf(ms.Store) == nil ||
		err == nil && k.Size > 0 && fi.Size() != k.Size
}
