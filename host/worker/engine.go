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
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

// errNoCode says that the directory has no code for this module on this machine, or damaged
// code. A worker that runs guests never compiles.
var errNoCode = errors.New("no compiled code")

// engineConfig returns the configuration of all runtimes. It fails on a platform without a
// compiler: the interpreter is for conformance tests, not a fallback.
func engineConfig(interpret bool, pages uint32) (cfg wazero.RuntimeConfig, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("engine: %v", r)
		}
	}()
	cfg = wazero.NewRuntimeConfigCompiler()
	if interpret {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	return cfg.
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(pages).
		WithCloseOnContextDone(false).
		WithDebugInfoEnabled(false).
		WithCustomSections(false), nil
}

// newRuntime makes a runtime. The engine chooses its compiler here, and panics if it has
// none.
func newRuntime(ctx context.Context, cfg wazero.RuntimeConfig) (r wazero.Runtime, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("engine: %v", p)
		}
	}()
	return wazero.NewRuntimeWithConfig(ctx, cfg), nil
}

// loadCode maps the compiled code of module in dir. If there is none the engine compiles,
// which loadCode detects by the file that it writes; in the jail it cannot even write that.
func loadCode(ctx context.Context, r wazero.Runtime, module []byte, dir string) (wazero.CompiledModule, error) {
	before, err := listing(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCode, err)
	}
	if len(before) != 1 {
		return nil, fmt.Errorf("%w: %d files in the entry, want 1", errNoCode, len(before))
	}
	code, err := r.CompileModule(ctx, module)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCode, err)
	}
	after, err := listing(dir)
	if err != nil || !slices.Equal(before, after) {
		return nil, fmt.Errorf("%w: the entry is for another engine or machine", errNoCode)
	}
	return code, nil
}

// listing returns the files in dir, two levels deep: the engine's directory is named after
// its version.
func listing(dir string) ([]string, error) {
	var files []string
	top, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, sub := range top {
		if !sub.IsDir() {
			files = append(files, sub.Name())
			continue
		}
		inner, err := os.ReadDir(filepath.Join(dir, sub.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range inner {
			files = append(files, sub.Name()+"/"+f.Name())
		}
	}
	return files, nil
}

// withAllocator makes instances of ctx use the worker's memory allocator.
func withAllocator(ctx context.Context, p *peak) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(p.allocate))
}

// EngineVersion returns the engine's version, for the key of the compile cache.
func EngineVersion() string {
	const path = "github.com/tetratelabs/wazero"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return path + "@" + m.Version
			}
		}
	}
	return path
}

// peak records the largest linear memory that was granted.
type peak struct{ bytes uint64 }

func (p *peak) note(size uint64) { p.bytes = max(p.bytes, size) }

// compileMemory is the soft memory limit of a compile worker; its hard limit is 1 GiB.
const compileMemory = 800 << 20

// compile compiles the module into one file of machine code in the directory.
//
// Workers that run guests do not get the module but its skeleton, in which function bodies
// are empty: loading code needs everything else of a module, and skipping the bodies saves
// most of the time. The engine finds code by the digest of the module, so the file is
// renamed to the name for the skeleton, which a second compilation, of the skeleton,
// determines.
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

// makeOutput makes the engine's directory before the jail is closed, because a compile
// worker cannot make one afterwards. It reads nothing untrusted.
func makeOutput(dir string, id jail.Identity) error {
	if _, err := wazero.NewCompilationCacheWithDir(dir); err != nil {
		return err
	}
	made, err := os.ReadDir(dir)
	if err != nil || id.UID < 0 {
		return err
	}
	for _, d := range made {
		// Ownership that cannot be changed stays with the worker, which then cannot change its uid either.
		_ = os.Chown(filepath.Join(dir, d.Name()), id.UID, id.GID)
	}
	return nil
}

// compileOne compiles module and returns the name of the engine's file, or "" if there is
// none besides other.
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
