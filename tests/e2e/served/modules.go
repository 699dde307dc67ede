package served

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/sluicehost/sluice/host/app"
)

// modules are those that were built, by directory.
var modules sync.Map

// Module builds a connector once per process, with its manifest. dir is below the
// top of the repository.
func Module(dir string) ([]byte, error) {
	build, _ := modules.LoadOrStore(dir, sync.OnceValues(func() ([]byte, error) {
		top, err := Top()
		if err != nil {
			return nil, err
		}
		return app.Build(context.Background(), filepath.Join(top, dir))
	}))
	wasm, err := build.(func() ([]byte, error))()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	return wasm, nil
}

// Top is the directory that go.mod is in; tests run somewhere below.
func Top() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
	return "", err
}

// CacheDir keeps compiled code between test runs: SLUICE_CACHE, or a directory of
// the user's cache.
func CacheDir() (string, error) {
	dir := os.Getenv("SLUICE_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "sluice-tests")
	}
	return dir, os.MkdirAll(dir, 0o700)
}
