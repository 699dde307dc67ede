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

// errNoCode: the directory has no code for this module on this machine, or what
// is there is damaged. A run worker never compiles.
var errNoCode = errors.New("no compiled code")

// engineConfig is the same for every runtime. A platform without a
// compiler is an error: the interpreter is a checker and not a fallback.
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

// newRuntime makes a runtime. The engine picks its compiler here, and panics
// where there is none.
func newRuntime(ctx context.Context, cfg wazero.RuntimeConfig) (r wazero.Runtime, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("engine: %v", p)
		}
	}()
	return wazero.NewRuntimeWithConfig(ctx, cfg), nil
}

// loadCode maps the compiled code that dir has for module. If there is none the
// engine would compile; that it did is seen by the file it leaves, and inside of
// the jail it cannot even leave that.
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

// listing returns the files below dir, two levels deep: the engine keeps its
// files in a directory named after its version.
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

// withAllocator makes instances of ctx use the worker's own linear memory.
func withAllocator(ctx context.Context, p *peak) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(p.allocate))
}

// EngineVersion names the engine, for the key of the compile cache.
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

// peak notes the largest linear memory that was asked for and granted.
type peak struct{ bytes uint64 }

func (p *peak) note(size uint64) { p.bytes = max(p.bytes, size) }

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
