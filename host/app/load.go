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

// A Loaded is a connector whose module and manifest passed their checks.
type Loaded struct {
	*CheckedModule
	Manifest  *abi.Manifest
	Connector store.Connector
	Warnings  []sandbox.Warning
	File      string               // the file that it was read from; "" if it was built or installed
	Signature *signature.Signature // supplied with the module; a file beside File is looked up separately
}

// Load loads a connector from a .wasm file, a source directory, which it builds first, or by the name of an
// installed connector. sidecar is a manifest file that replaces the module's own; "" means none. The error is a
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

// ambiguous refuses a directory with the name of an installed connector: what runs must not depend on the
// current directory.
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
			return refusal("connector_not_runnable",
				fmt.Errorf("%s is a directory here and an installed connector; write ./%s for the directory, or %s for the connector", dir, dir, c.ID))
		}
	}
	return nil
}

// Embed loads a module or source directory and replaces the manifest in its module by sidecar's. The result is a
// new module with another digest, so a signature of the old one does not match.
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

// IsName reports whether Load takes arg as the name of an installed connector: no such file exists and it does
// not look like one. A connector's id, a URL, is a name as well.
func IsName(arg string) bool {
	if _, err := os.Stat(arg); err == nil {
		return false
	}
	return strings.Contains(arg, "://") || filepath.Base(arg) == arg && filepath.Ext(arg) != ".wasm"
}

// An Import is a function that a module imports.
type Import = sandbox.Import

// readModule reads a regular file. A file above the size limit is refused without reading it.
func readModule(path string, lim sandbox.ModuleLimits) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, refusal("connector_not_runnable", err)
	}
	defer f.Close() // only read from
	fi, err := f.Stat()
	if err != nil {
		return nil, refusal("connector_not_runnable", err)
	}
	if !fi.Mode().IsRegular() {
		return nil, refusal("connector_not_runnable", fmt.Errorf("%s is no regular file", path))
	}
	if most := lim.Effective().Bytes; fi.Size() > most {
		return nil, &run.Refusal{Code: sandbox.CodeModuleInvalid,
			Message: fmt.Sprintf("%s has %d bytes, more than %d", path, fi.Size(), most),
			Details: map[string]any{"rule": sandbox.RuleModuleBytes, "offset": 0}}
	}
	wasm := make([]byte, fi.Size())
	if _, err := io.ReadFull(f, wasm); err != nil {
		return nil, refusal("connector_not_runnable", fmt.Errorf("read %s: %w", path, err))
	}
	return wasm, nil
}

// check is LoadBytes with the manifest from a file, "" for none.
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

// readSidecar reads a manifest file up to one byte beyond the limit, which is enough to refuse a larger one.
func readSidecar(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, refusal("connector_invalid", fmt.Errorf("read manifest: %w", err))
	}
	defer f.Close() // only read from
	raw, err := io.ReadAll(io.LimitReader(f, abi.MaxManifestBytes+1))
	if err != nil {
		return nil, refusal("connector_invalid", fmt.Errorf("read manifest: %w", err))
	}
	return raw, nil
}

// LoadBytes checks a module and reads its manifest; a non-empty manifest replaces the module's own. None of the
// module's code runs, and nothing is stored. The Loaded takes ownership of wasm. The error is a *run.Refusal.
func (ms *modules) LoadBytes(wasm, manifest []byte) (*Loaded, error) {
	m, err := ms.checkModule(wasm)
	if err != nil {
		return nil, err
	}
	return loaded(m, manifest)
}

// checkModule checks a module, unless it is the one that it checked last: who runs a file submits it to look at it, and
// again to run it.
func (ms *modules) checkModule(wasm []byte) (*CheckedModule, error) {
	if last := ms.last.Load(); last != nil && last.Size == int64(len(wasm)) && last.Digest == string(digestOf(wasm)) {
		return &CheckedModule{wasm, *last}, nil
	}
	m, err := sandbox.CheckModule(wasm, ms.Options.Module)
	if err != nil {
		return nil, moduleRefusal(err)
	}
	ms.last.Store(&m)
	return &CheckedModule{wasm, m}, nil
}

// loaded reads and checks the manifest of a module, or the one that replaces it.
func loaded(m *CheckedModule, manifest []byte) (l *Loaded, err error) {
	l = &Loaded{CheckedModule: m}
	raw := l.Module.Manifest
	if len(manifest) > 0 {
		raw = manifest
	}
	if raw == nil {
		return nil, refusal("connector_invalid",
			errors.New("the module carries no manifest; embed one with sluice build, or give --manifest FILE"))
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
