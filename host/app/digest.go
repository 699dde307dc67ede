package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// openModule reads an installed module and verifies the digest of the bytes that it returns, so that a later
// change of the file has no effect. A module that differs from the installed one is quarantined and refused.
func (ms *modules) openModule(ctx context.Context, c store.Connector) ([]byte, error) {
	path := ms.modulePath(c.Digest)
	if !isDigest(string(c.Digest)) {
		return nil, refusal("connector_not_runnable",
			fmt.Errorf("%s is listed with the digest %.80q, which is none; install it again", c.Name, c.Digest))
	}
	here, err := ms.present(ctx, c.Digest)
	if err != nil {
		return nil, err
	}
	wasm, err := readModule(path, ms.Options.Module)
	if !here || errors.Is(err, fs.ErrNotExist) {
		return nil, refusal("connector_not_runnable",
			fmt.Errorf("the module of %s is not at %s; install it again", c.Name, path))
	}
	if err != nil {
		return nil, err
	}
	found := digestOf(wasm)
	if found == c.Digest {
		return wasm, nil
	}
	ms.Options.Log.Warn("module changed on the disk", "connector", c.ID, "installed", c.Digest, "found", found)
	where, err := ms.quarantine(path)
	if err != nil {
		return nil, refusal("connector_not_runnable",
			fmt.Errorf("the module of %s was changed: it has digest %s, not %s; it could not be set aside: %w", c.Name,
				found, c.Digest, err))
	}
	changed := refusal("connector_not_runnable",
		fmt.Errorf("the module of %s was changed since it was installed: it has digest %s, not %s; it was not run, and is now in %s; find out who changed it, and install it again", c.Name, found, c.Digest, where))
	return nil, errors.Join(changed,
		ms.Audit(audit.Event{Action: audit.ModuleQuarantined, Actor: "host", Target: string(c.ID), Outcome: audit.Done,
			Details: []audit.Detail{audit.Digest(string(found))}}))
}

// present reports whether the file of a module exists, after fetching one that another host installed.
func (ms *modules) present(ctx context.Context, d store.Digest) (bool, error) {
	_, err := os.Lstat(ms.modulePath(d))
	if errors.Is(err, fs.ErrNotExist) {
		if err := ms.fetchModule(ctx, d); err != nil {
			return false, err
		}
		_, err = os.Lstat(ms.modulePath(d))
	}
	return !errors.Is(err, fs.ErrNotExist), nil
}

// quarantine moves a module's file to a directory from which nothing is loaded, and returns its new path.
func (ms *modules) quarantine(path string) (string, error) {
	dir := filepath.Join(filepath.Dir(path), "quarantine")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := strings.TrimSuffix(filepath.Base(path), ".wasm") + "-" + time.Now().UTC().Format("20060102T150405.000000000") +
		".wasm"
	where := filepath.Join(dir, name)
	return where, os.Rename(path, where)
}

// digestOf returns the digest of a module.
func digestOf(wasm []byte) store.Digest {
	sum := sha256.Sum256(wasm)
	return store.Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// isDigest reports whether text is a well-formed digest, which is safe as a file name.
func isDigest(text string) bool {
	sum, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(sum) == 2*sha256.Size &&
		!strings.ContainsFunc(sum, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}
