package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Binary is a browser that can be started: the real executable, not a script
// that starts one (B172).
type Binary struct {
	Path    string // absolute, of an executable without links
	Product string // Chromium, Google Chrome, …
	Version string // 148.0.7778.167
	Major   int
	// Shell is true for the headless shell, which ignores a flag of B245 and so must
	// not run outside of a network namespace (B174).
	Shell bool
}

// names are looked for on PATH, in this order (B172).
var names = []string{"chromium", "google-chrome", "chromium-headless-shell"}

// install is how an owner gets a browser (B173).
const install = "install one with `apt-get install chromium` (or chromium-headless-shell) on Debian and Ubuntu, " +
	"`dnf install chromium` on Fedora, `apk add chromium` on Alpine"

// Find is the browser to use: the configured one if there is a configured path,
// which is final, else the first on PATH that works (B172). namespace says that
// browsers get a network namespace of their own, without which the headless shell
// is passed over (B174). It starts no browser: each candidate is asked for its
// version, at most 5 s on an idle machine, without rights of this host's root.
//
// ErrMissing says what was tried and how to install one; ErrUnsafe that there is
// only what must not be used; ErrSlow that there is one which does not answer.
func Find(ctx context.Context, configured string, namespace bool) (Binary, error) {
	if configured != "" {
		bin, err := examine(ctx, configured)
		if errors.Is(err, ErrSlow) {
			return Binary{}, err
		}
		if err != nil {
			return Binary{}, fmt.Errorf("%w: the configured %s: %w; name another with browser.path or SLUICE_BROWSER, or none and %s", ErrMissing, configured, err, install)
		}
		return bin, bin.safe(namespace)
	}
	var tried []string
	var unsafe, slow error
	for _, name := range names {
		bin, err := examine(ctx, name)
		if err == nil {
			if err = bin.safe(namespace); err == nil {
				return bin, nil
			}
			unsafe = err
		}
		if errors.Is(err, ErrSlow) {
			slow = errors.Join(slow, err)
		}
		if ctx.Err() != nil {
			return Binary{}, ctx.Err()
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", name, err))
	}
	if slow != nil { // one that is slow is not missing
		return Binary{}, slow
	}
	if unsafe != nil {
		return Binary{}, unsafe
	}
	return Binary{}, fmt.Errorf("%w: tried %s; %s", ErrMissing, strings.Join(tried, ", "), install+", or set browser.path")
}

// safe refuses what leaks where nothing but its flags holds it (B174).
func (b Binary) safe(namespace bool) error {
	if b.Shell && !namespace {
		return fmt.Errorf("%w: %s ignores the WebRTC policy and leaks packets; it is used only where this host may make "+
			"network namespaces: run the host as root, or install chromium", ErrUnsafe, filepath.Base(b.Path))
	}
	return nil
}

// examine is the browser that a name or path stands for.
func examine(ctx context.Context, name string) (Binary, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return Binary{}, errors.New("not on PATH")
	}
	if err != nil {
		return Binary{}, reason(err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return Binary{}, err
	}
	if path, err = follow(path); err != nil {
		return Binary{}, err
	}
	product, version, major, err := askVersion(ctx, path)
	if err != nil {
		return Binary{}, err
	}
	return Binary{Path: path, Product: product, Version: version, Major: major, Shell: isShell(path)}, nil
}

// isShell knows the headless shell by the names that its packages give it.
func isShell(path string) bool {
	base := strings.ReplaceAll(filepath.Base(path), "_", "-")
	return strings.Contains(base, "headless-shell")
}

// reason drops the path that an error repeats.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var e *exec.Error
	if errors.As(err, &e) {
		return reason(e.Err)
	}
	return err
}
