package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
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
