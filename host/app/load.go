package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// A Loaded connector is a module that passed its checks and its manifest.
type Loaded struct {
	*CheckedModule
	Manifest  *abi.Manifest
	Connector store.Connector
	Warnings  []sandbox.Warning
	File      string               // it was read from; "" for one that was built or installed
	Signature *signature.Signature // that came with it, nil for none; one beside File is looked for
}

// Load takes a connector from a .wasm file, a source directory, which is built first, or an
// installed name. sidecar is a manifest file that wins over the module's own. The error is a
// *run.Refusal.
func (ms *modules) Load(ctx context.Context, arg, sidecar string) (*Loaded, error) {
	fi, err := os.Stat(arg)
	switch {
	case err == nil && fi.IsDir():
		if err := ms.ambiguous(ctx, arg); err != nil {
			return nil, err
		}
		wasm, err := Build(ctx, arg)
		if err != nil {
			return nil, err
		}
		return ms.check(wasm, sidecar)
	case err == nil:
		wasm, err := readModule(arg, ms.Options.Module)
		if err != nil {
			return nil, err
		}
		l, err := ms.check(wasm, sidecar)
		if err == nil {
			l.File = arg
		}
		return l, err
	case !IsName(arg):
		return nil, refusal("connector_not_runnable", fmt.Errorf("no module or source directory at %s", arg))
	}
	return ms.installed(ctx, arg, sidecar)
}

// ambiguous refuses a directory that has the name of an installed connector: what
// runs must not depend on where the command was given.
func (ms *modules) ambiguous(ctx context.Context, dir string) error {
	if filepath.Base(dir) != dir || dir == "." || dir == ".." {
		return nil
	}
	for _, bundled := range []bool{false, true} {
		c, ok, err := ms.connector(ctx, dir, bundled)
		if err != nil {
			return err
		}
		if ok {
			return refusal("connector_not_runnable", fmt.Errorf("%s is a directory here and an installed connector; write ./%s for the directory, or %s for the connector", dir, dir, c.ID))
		}
	}
	return nil
}

// Embed is Load of a module or source directory with another manifest, which becomes the
// module's own, in place of one that it has. The digest is that of the new module, so a
// signature of the old one does not fit.
func (ms *modules) Embed(ctx context.Context, arg, sidecar string) (*Loaded, error) {
	l, err := ms.Load(ctx, arg, sidecar)
	if err != nil {
		return nil, err
	}
	wasm, err := sandbox.EmbedManifest(l.Wasm, l.Manifest.Raw)
	if err != nil {
		return nil, moduleRefusal(err)
	}
	return ms.LoadBytes(wasm, nil)
}

// IsName reports whether Load would take arg as the name of an installed
// connector: it names no file here and does not look like one. A connector's
// id, a URL, is a name as well.
func IsName(arg string) bool {
	if _, err := os.Stat(arg); err == nil {
		return false
	}
	return strings.Contains(arg, "://") || filepath.Base(arg) == arg && filepath.Ext(arg) != ".wasm"
}

// An Import is one function that a module asks for.
type Import = sandbox.Import

// readModule reads a regular file of at most the size limit, into as much
// memory as it has bytes. A larger one is refused unread.
func readModule(path string, lim sandbox.ModuleLimits) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, refusal("connector_not_runnable", err)
	}
	defer f.Close() // only read
	fi, err := f.Stat()
	if err != nil {
		return nil, refusal("connector_not_runnable", err)
	}
	if !fi.Mode().IsRegular() {
		return nil, refusal("connector_not_runnable", fmt.Errorf("%s is no regular file", path))
	}
	if most := lim.Effective().Bytes; fi.Size() > most {
		return nil, &run.Refusal{Code: sandbox.CodeModuleInvalid, Message: fmt.Sprintf("%s has %d bytes, more than %d", path, fi.Size(), most),
			Details: map[string]any{"rule": sandbox.RuleModuleBytes, "offset": 0}}
	}
	wasm := make([]byte, fi.Size())
	if _, err := io.ReadFull(f, wasm); err != nil {
		return nil, refusal("connector_not_runnable", fmt.Errorf("read %s: %w", path, err))
	}
	return wasm, nil
}

// check is LoadBytes with a manifest file, "" for none.
func (ms *modules) check(wasm []byte, sidecar string) (*Loaded, error) {
	if sidecar == "" {
		return ms.LoadBytes(wasm, nil)
	}
	raw, err := readSidecar(sidecar)
	if err != nil {
		return nil, err
	}
	return ms.LoadBytes(wasm, raw)
}

// readSidecar reads a manifest file, one byte more than a manifest can have at
// most.
func readSidecar(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, refusal("connector_invalid", fmt.Errorf("read manifest: %w", err))
	}
	defer f.Close() // only read
	raw, err := io.ReadAll(io.LimitReader(f, abi.MaxManifestBytes+1))
	if err != nil {
		return nil, refusal("connector_invalid", fmt.Errorf("read manifest: %w", err))
	}
	return raw, nil
}

// LoadBytes checks a module and reads its manifest; manifest, unless empty, replaces the
// module's own. Nothing of the module is run, and nothing is stored. The Loaded owns wasm from
// then on. The error is a *run.Refusal.
func (ms *modules) LoadBytes(wasm, manifest []byte) (*Loaded, error) {
	m, err := ms.checkModule(wasm)
	if err != nil {
		return nil, err
	}
	return loaded(m, manifest)
}

func (ms *modules) checkModule(wasm []byte) (*CheckedModule, error) {
	m, err := sandbox.CheckModule(wasm, ms.Options.Module)
	if err != nil {
		return nil, moduleRefusal(err)
	}
	return &CheckedModule{wasm, m}, nil
}

// loaded reads the manifest of a module, or the one that replaces it.
func loaded(m *CheckedModule, manifest []byte) (l *Loaded, err error) {
	l = &Loaded{CheckedModule: m}
	raw := l.Module.Manifest
	if len(manifest) > 0 {
		raw = manifest
	}
	if raw == nil {
		return nil, refusal("connector_invalid", errors.New("the module carries no manifest; embed one with sluice build, or give --manifest FILE"))
	}
	if l.Manifest, err = abi.ReadManifest(raw); err == nil {
		err = Kinds.Check(l.Manifest)
	}
	if err != nil {
		return nil, manifestRefusal(err)
	}
	var declared []string
	required := map[string]bool{}
	for name, b := range l.Manifest.Bindings {
		declared = append(declared, name)
		required[name] = b.Required
	}
	if err := sandbox.CheckBindings(l.Module, declared); err != nil {
		return nil, moduleRefusal(err)
	}
	l.Warnings = sandbox.Warnings(l.Module, required)
	l.Connector = store.Connector{
		ID: store.ConnectorID(l.Manifest.ConnectorID), Name: l.Manifest.Name(), Version: l.Manifest.Version,
		DisplayName: l.Manifest.DisplayName, Digest: store.Digest(l.Module.Digest),
		Transport: string(l.Module.Transport), Manifest: l.Manifest.Raw, Size: l.Module.Size,
	}
	for _, w := range l.Warnings {
		l.Connector.Warnings = append(l.Connector.Warnings, store.Warning{Code: w.Code, Message: w.Detail})
	}
	return l, nil
}
