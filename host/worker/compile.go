package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

// compileMemory is where the collector of a compile worker begins to work hard;
// its wall is at 1 GiB.
const compileMemory = 800 << 20

// compile turns the module into one file of machine code in the directory.
//
// Run workers do not get the module but its skeleton, whose functions have empty
// bodies: loading code needs everything of a module but the bodies, and skipping
// them saves most of the time. The engine finds code by the digest of the bytes
// it is asked for, so the file is given the name that the skeleton asks for; what
// that is tells a second compilation, of the skeleton.
func (w *worker) compile(ctx context.Context, bytes []byte) (abi.Exit, error) {
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(compileMemory)
	if w.load.ModuleBytes > uint64(len(bytes)) || !w.load.Directory {
		return abi.Exit{}, stage(abi.StageEngine, fmt.Errorf("%w: nothing to compile", abi.ErrWire))
	}
	module, skeleton := bytes[:w.load.ModuleBytes], bytes[w.load.ModuleBytes:]
	began := time.Now()
	full, err := w.compileOne(ctx, module, "")
	if err != nil {
		return abi.Exit{}, err
	}
	bare, err := w.compileOne(ctx, skeleton, full)
	if err != nil {
		return abi.Exit{}, err
	}
	if bare != "" { // else the module is its own skeleton
		if err := os.Rename(filepath.Join(w.walls.Dir, full), filepath.Join(w.walls.Dir, bare)); err != nil {
			return abi.Exit{}, stage(abi.StageCode, err)
		}
	}
	return abi.Exit{Kind: abi.ExitDone, Instantiate: time.Since(began)}, nil
}

// makeOutput makes the engine's directory in the handed one, while that can be
// done: behind the walls a compile worker makes no directory. It looks at nothing
// that came from outside.
func makeOutput(dir string, id jail.Identity) error {
	if _, err := wazero.NewCompilationCacheWithDir(dir); err != nil {
		return err
	}
	made, err := os.ReadDir(dir)
	if err != nil || id.UID < 0 {
		return err
	}
	for _, d := range made {
		// What cannot be given away stays with the worker, which cannot become another then either.
		_ = os.Chown(filepath.Join(dir, d.Name()), id.UID, id.GID)
	}
	return nil
}

// compileOne compiles module and returns the file that the engine made, "" if it
// made none besides other.
func (w *worker) compileOne(ctx context.Context, module []byte, other string) (string, error) {
	cache, err := wazero.NewCompilationCacheWithDir(w.walls.Dir)
	if err != nil {
		return "", stage(abi.StageCode, err)
	}
	cfg, err := engineConfig(false, 65536)
	if err != nil {
		return "", stage(abi.StageEngine, err)
	}
	r, err := newRuntime(ctx, cfg.WithCompilationCache(cache))
	if err != nil {
		return "", stage(abi.StageEngine, err)
	}
	_, err = r.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return "", stage(abi.StageCode, err)
		}
		return "", stage(abi.StageModule, err)
	}
	files, err := listing(w.walls.Dir)
	if err != nil {
		return "", stage(abi.StageCode, err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return f == other })
	switch {
	case len(files) == 1:
		return files[0], nil
	case len(files) == 0 && other != "":
		return "", nil
	}
	return "", stage(abi.StageCode, fmt.Errorf("the engine left %d files", len(files)))
}
