// Package build compiles what tests run: the program sluice and guests. Every test process of a checkout shares the
// results, which lie in .cache/build under a digest of the sources, so that each is linked once, whoever asks first.
package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/sandbox"
)

// guestFlags are those of "sluice build" for guests: one build cache serves both.
var guestFlags = []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"}

// Program returns the path of the command sluice. Like a release it has no debug
// information and no cgo.
func Program() (path string, err error) { return Native(".") }

// Native returns the path of a program for this machine. Directories are named from the
// top of the repository, with slashes.
func Native(dir string) (path string, err error) {
	return made(dir, "", []string{"CGO_ENABLED=0"}, "-buildvcs=false", "-ldflags=-s -w")
}

// ProgramAt puts the command sluice at a path where every user can run it.
func ProgramAt(path string) error {
	program, err := Program()
	if err != nil {
		return err
	}
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// Module returns the path of a program for the sandbox, without a manifest.
func Module(dir string, flags ...string) (path string, err error) {
	return made(dir, ".wasm", []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"},
		append(slices.Clone(guestFlags), flags...)...)
}

// Guest returns the contents of Module's file.
func Guest(dir string, flags ...string) (wasm []byte, err error) {
	path, err := Module(dir, flags...)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Connectors writes connectors to a directory, each named after its own directory, with
// .wasm.
func Connectors(to string, dirs ...string) error {
	for _, dir := range dirs {
		wasm, err := Connector(dir)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(dir)+".wasm"), wasm, 0o644) // #nosec G306 -- tests run as several users
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Connector compiles a guest and embeds the manifest.json of its directory, as app.Build does.
func Connector(dir string) (wasm []byte, err error) {
	top, err := Top()
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(dir), "manifest.json"))
	if err != nil {
		return nil, err
	}
	if wasm, err = Guest(dir); err != nil {
		return nil, err
	}
	return sandbox.EmbedManifest(wasm, manifest)
}

// made returns the path of a program, and builds it first if it is not there; other
// processes that want it wait for that.
func made(dir, suffix string, env []string, flags ...string) (path string, err error) {
	top, err := Top()
	if err != nil {
		return "", err
	}
	sources, err := digest()
	if err != nil {
		return "", fmt.Errorf("read the sources: %w", err)
	}
	shelf := filepath.Join(top, ".cache", "build")
	if err := os.MkdirAll(shelf, 0o700); err != nil {
		return "", err
	}
	what := sha256.Sum256(fmt.Appendln(nil, runtime.Version(), os.Getenv("GOFLAGS"), dir, env, flags))
	name := filepath.Join(shelf, filepath.Base(filepath.Join(top, dir))+"-"+hex.EncodeToString(what[:6]))
	path = name + "-" + sources + suffix
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	unlock, err := lock(name + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := goBuild(filepath.Join(top, filepath.FromSlash(dir)), path, env, flags); err != nil {
		return "", fmt.Errorf("build %s: %w", dir, err)
	}
	return path, forget(name, path)
}

// goBuild gives the result its name only when it is complete.
func goBuild(dir, path string, env, flags []string) error {
	cmd := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", path + ".part", "."})...) // #nosec G204 -- of this repository
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(said))
	}
	return os.Rename(path+".part", path)
}

// forget removes results of older sources, except those of the last hour: a test that still runs may use them.
func forget(name, path string) error {
	all, err := filepath.Glob(name + "-*")
	if err != nil {
		return err
	}
	for _, old := range all {
		info, err := os.Stat(old)
		if err == nil && old != path && time.Since(info.ModTime()) > time.Hour {
			err = os.Remove(old)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// digest covers every file that a program may be built from: Go files but for tests, modules, and what is embedded,
// which lies outside of docs, tests and testdata. It reads them once in a process.
var digest = sync.OnceValues(func() (string, error) {
	top, err := Top()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == top {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "docs" {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(top, path)
		if err != nil || !d.Type().IsRegular() || !isSource(filepath.ToSlash(rel)) {
			return err
		}
		return add(h, rel, path)
	})
	return hex.EncodeToString(h.Sum(nil)[:12]), err
})

func isSource(path string) bool {
	switch base := path[strings.LastIndexByte(path, '/')+1:]; {
	case strings.HasSuffix(base, "_test.go"):
		return false
	case strings.HasSuffix(base, ".go"), base == "go.mod", base == "go.sum":
		return true
	}
	return strings.Contains(path, "/") && !strings.HasPrefix(path, "tests/") && !strings.Contains(path, "testdata/")
}

func add(h io.Writer, name, path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return err
}

// Top returns the directory of the repository; tests run somewhere below it.
func Top() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "guest-sdk")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("the working directory is outside of the repository")
		}
		dir = up
	}
	return "", err
}

// CacheDir keeps compiled code between test runs: SLUICE_CACHE, or .cache/modules.
func CacheDir() (string, error) {
	if dir := os.Getenv("SLUICE_CACHE"); dir != "" {
		return dir, os.MkdirAll(dir, 0o700)
	}
	top, err := Top()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(top, ".cache", "modules")
	return dir, os.MkdirAll(dir, 0o700)
}
