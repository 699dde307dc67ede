package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/patience"
)

// Prepare ensures that the cache has compiled code for the module, which passed CheckModule
// with exactly these bytes. Modules that differ only in custom sections, such as the
// manifest, share code. Compilation runs in a worker with limits; concurrent calls for the
// same code, also in other processes, wait for one compilation. If the module cannot be
// compiled, the error is a *Failure with one of the codes CodeCompile…,
// CodeEngineUnavailable or CodeIsolationUnavailable.
func (s *Sandbox) Prepare(ctx context.Context, m Module, wasm []byte) (Code, error) {
	code := Code{key: keyOf(m.Compiled, s.options.Engine)}
	if _, err := s.cache.verify(code.key); err == nil {
		s.cache.touch(code.key)
		return code, nil
	}
	err := s.cache.once(ctx, code.key, func() error { return s.prepare(ctx, code.key, wasm) })
	if err != nil {
		return Code{}, err
	}
	return code, nil
}

// once runs prepare, or waits for a concurrent call with the same key, and tries again if
// the context of that call ends.
func (c *cache) once(ctx context.Context, key string, prepare func() error) error {
	for {
		c.mu.Lock()
		f, flying := c.preparations[key]
		if !flying {
			f = &preparation{done: make(chan struct{})}
			c.preparations[key] = f
		}
		c.mu.Unlock()
		if !flying {
			f.err = prepare()
			c.mu.Lock()
			delete(c.preparations, key)
			c.mu.Unlock()
			close(f.done)
			return f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !errors.Is(f.err, context.Canceled) && !errors.Is(f.err, context.DeadlineExceeded) {
			return f.err
		}
	}
}

// prepare looks for the entry on disk, and compiles if it is absent.
func (s *Sandbox) prepare(ctx context.Context, key string, wasm []byte) error {
	var bare []byte
	var bareErr error
	var work sync.WaitGroup
	work.Go(func() { bare, bareErr = skeleton(wasm) }) // concurrently with the examination
	defer work.Wait()
	unlock, err := lockFile(ctx, filepath.Join(s.cache.dir, key+lockSuffix))
	if err != nil {
		return launchFailure(err)
	}
	defer unlock()
	e, err := s.cache.inspect(key)
	work.Wait()
	if bareErr != nil {
		return &Failure{Code: CodeCompileFailed, Detail: bareErr.Error()}
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.cache.drop(key, err)
		}
		if err := s.compile(ctx, key, slices.Concat(slices.Collect(compiled(wasm))...), bare); err != nil {
			return err
		}
		if e, err = s.cache.inspect(key); err != nil {
			return launchFailure(err)
		}
		defer s.cache.evict(key)
	}
	if err := s.cache.adopt(key, e, bare); err != nil {
		return launchFailure(err)
	}
	s.cache.touch(key)
	return nil
}

// compile runs a compile worker and stores its output.
func (s *Sandbox) compile(ctx context.Context, key string, wasm, bare []byte) (err error) {
	ctx, cancel := patience.Within(ctx, s.options.CompileWall)
	defer cancel()
	out, err := os.MkdirTemp(s.cache.dir, buildPrefix)
	if err != nil {
		return launchFailure(err)
	}
	defer func() {
		if removeErr := discard(out); removeErr != nil {
			s.options.Log.Warn("compiler output not removed", "err", removeErr)
		}
	}()
	began := time.Now()
	ctx, unguard := limitOutput(ctx, out, s.options.EntryBytes)
	defer unguard()
	err = s.withBlank(ctx, func(b *blank) error {
		err := s.runCompiler(ctx, b, out, wasm, bare)
		if closeErr := b.close(); closeErr != nil && err == nil {
			err = launchFailure(closeErr) // its output must not be used while it lives
		}
		return err
	})
	if err != nil {
		return compileFailure(ctx, err)
	}
	if err := s.accept(ctx, key, out); err != nil {
		if ctx.Err() != nil {
			return compileFailure(ctx, ctx.Err())
		}
		return &Failure{Code: CodeCompileFailed, Detail: err.Error()}
	}
	s.options.Log.Info("module compiled", "key", key, "bytes", len(wasm), "took", time.Since(began))
	return nil
}

func (s *Sandbox) runCompiler(ctx context.Context, b *blank, out string, wasm, bare []byte) error {
	dir, err := os.Open(out)
	if err != nil {
		return launchFailure(err)
	}
	defer dir.Close() // only passed on
	if err := b.process.Own(dir); err != nil {
		return launchFailure(err)
	}
	module, err := jail.MemFD("module", wasm, bare)
	if err != nil {
		return launchFailure(err)
	}
	defer module.Close() // only passed on
	limits := jail.CompileLimits(uint64(s.options.EntryBytes))
	limits.CPU = s.options.CompileCPU
	limits.AddressBytes += s.options.CompileData - limits.DataBytes
	limits.DataBytes = s.options.CompileData
	_, _, err = s.assign(ctx, b, abi.Load{
		Task: abi.TaskCompile, ModuleBytes: uint64(len(wasm)), Limits: s.options.Limits,
	}, limits, []*os.File{module, dir})
	return err
}

// compileFailure returns the Failure for the end of a compile worker.
func compileFailure(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*Failure](context.Cause(ctx)); ok {
		return f
	}
	switch {
	case errors.Is(err, errSlow), isLate(ctx):
		return &Failure{Code: CodeCompileTimeout, Detail: "compiling took too long" + busyNote(errSlow)}
	case errors.Is(err, errMemory):
		return &Failure{Code: CodeCompileMemory, Detail: "compiling took too much memory"}
	case errors.Is(err, errBadEntry):
		return &Failure{Code: CodeCompileFailed, Detail: strings.TrimPrefix(err.Error(), errBadEntry.Error()+": ")}
	}
	return err
}

// isLate reports whether the context ended because its own budget is used up.
func isLate(ctx context.Context) bool {
	_, late := errors.AsType[*patience.Late](context.Cause(ctx))
	return late
}

// accept takes the output of a compile worker that has ended: exactly one regular file with
// one link and within the limit. It is copied; the worker's file itself is never used.
func (s *Sandbox) accept(ctx context.Context, key, out string) error {
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer root.Close() // only read
	path, err := onlyFile(root)
	if err != nil {
		return fmt.Errorf("compiler left something else: %w", err)
	}
	if !codeName().MatchString(path) {
		return fmt.Errorf("compiler left a file called %q", path)
	}
	f, err := root.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || links(info) != 1 || info.Size() > s.options.EntryBytes {
		return fmt.Errorf("compiler left a file of %d bytes and %d links: at most %d bytes and one link",
			info.Size(), links(info), s.options.EntryBytes)
	}
	return s.cache.store(key, path, contextReader{ctx, f})
}

// lockPoll is how often a lock held by another process is tried.
const lockPoll = 20 * time.Millisecond

// lockFile takes the lock of a key across processes.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		held, err := tryLock(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if held {
			return func() { _ = f.Close() }, nil // which unlocks
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}
