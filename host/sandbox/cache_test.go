package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/sandbox"
)

// watched counts compilations and audit entries of a sandbox.
type watched struct {
	slog.Handler
	mu       sync.Mutex
	compiled int
	audits   []string
}

func (w *watched) Enabled(context.Context, slog.Level) bool { return true }
func (w *watched) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Message == "module compiled" {
		w.compiled++
	}
	return nil
}

func (w *watched) audit(event string, details map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audits = append(w.audits, event+": "+details["reason"])
}

func (w *watched) count() (compiled int, audits []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compiled, w.audits
}

// at changes options to a cache directory of the test's own, watched.
func at(dir string, w *watched) func(*sandbox.Options) {
	return func(o *sandbox.Options) { o.CacheDir, o.Log, o.Audit = dir, slog.New(w), w.audit }
}

// codeFile is the one file of machine code in a cache.
func codeFile(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "code", "*", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("code files: %v, %v", found, err)
	}
	return found[0]
}

func TestCompiledCodeIsKept(t *testing.T) {
	dir := t.TempDir()
	wasm := raw().bytes()
	var first, second watched
	prepared(t, open(t, at(dir, &first)), wasm)
	s := open(t, at(dir, &second))
	prepared(t, s, wasm)
	spec := prepared(t, s, wasm)
	if n, audits := first.count(); n != 1 || len(audits) > 0 {
		t.Errorf("compiled %d times, audits %q", n, audits)
	}
	if n, audits := second.count(); n != 0 || len(audits) > 0 {
		t.Errorf("compiled again %d times, audits %q", n, audits)
	}
	g := started(t, s, spec)
	drain(g)
	if e := g.Exit(); e.Kind != sandbox.ExitExited {
		t.Errorf("ended as %+v", e)
	}
	info, err := os.Stat(codeFile(t, dir))
	if err != nil || info.Mode().Perm()&0o137 != 0 {
		t.Errorf("compiled code has mode %v, %v", info.Mode(), err)
	}
}

// A manifest is no code: another one needs no other code, but other names or other code do.
func TestManifestsShareCode(t *testing.T) {
	bare := raw().bytes()
	embedded := func(manifest string) []byte {
		wasm, err := sandbox.EmbedManifest(bare, []byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		return wasm
	}
	var w watched
	s := open(t, at(t.TempDir(), &w))
	for _, c := range []struct {
		what     string
		wasm     []byte
		compiled int // so far
	}{
		{"the module", bare, 1},
		{"with a manifest", embedded(`{"v":1}`), 1},
		{"with another", embedded(`{"v":2}`), 1},
		{"with names", raw().then(0, custom("name")).bytes(), 2},
		{"other code", raw(opUnreachable).bytes(), 3},
		{"the module again", bare, 3},
	} {
		g := started(t, s, prepared(t, s, c.wasm))
		drain(g)
		if want := c.what != "other code"; (g.Exit().Kind == sandbox.ExitExited) != want {
			t.Errorf("%s ended as %+v", c.what, g.Exit())
		}
		if n, audits := w.count(); n != c.compiled || len(audits) > 0 {
			t.Errorf("%s: compiled %d times so far, want %d; audits %q", c.what, n, c.compiled, audits)
		}
	}
}

func TestOneCompilesForAll(t *testing.T) { // In one process, and across
	dir := t.TempDir()
	wasm := raw(opUnreachable).bytes()
	var w watched
	sandboxes := []*sandbox.Sandbox{open(t, at(dir, &w)), open(t, at(dir, &w))}
	m, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if _, err := sandboxes[i%2].Prepare(context.Background(), m, wasm); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n, audits := w.count(); n != 1 || len(audits) > 0 {
		t.Errorf("compiled %d times, audits %q", n, audits)
	}
}

func TestBadEntriesAreMadeAnew(t *testing.T) {
	wasm := raw(join(i32(9), []byte{opCall, rawExit})...).bytes()
	entryOf := func(code string) string { return filepath.Join(filepath.Dir(code), "..", "..", "entry.json") }
	rewrite := func(t *testing.T, path string, change func([]byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]func(t *testing.T, code string){
		"one bit flipped": func(t *testing.T, code string) {
			rewrite(t, code, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		},
		"cut short": func(t *testing.T, code string) {
			rewrite(t, code, func(b []byte) []byte { return b[:len(b)-1] })
		},
		"swapped, with a matching digest": func(t *testing.T, code string) {
			rewrite(t, code, func(b []byte) []byte { return []byte("other code") })
			rewrite(t, entryOf(code), func(b []byte) []byte {
				var m map[string]any
				if err := json.Unmarshal(b, &m); err != nil {
					t.Fatal(err)
				}
				m["sha256"], m["size"] = "a4c6ccf5e8e0a2b1d1a3c1a6e5cbbd2bd9c27d48a9c2bfb3c15c09a2dd8fdb5d", 10
				b, _ = json.Marshal(m)
				return b
			})
		},
		"no entry.json": func(t *testing.T, code string) { rewrite(t, entryOf(code), func([]byte) []byte { return nil }) },
		"a file beside it": func(t *testing.T, code string) {
			rewrite(t, code, func(b []byte) []byte { _ = os.WriteFile(code+"x", b, 0o600); return b })
		},
		"a second name": func(t *testing.T, code string) { _ = os.Link(code, filepath.Join(t.TempDir(), "name")) },
		"another engine's": func(t *testing.T, code string) {
			_ = os.Rename(code, strings.Replace(code, filepath.Base(code)[:4], "0000", 1))
		},
	}
	for name, damage := range tests {
		for _, when := range []string{"before the process", "before the run"} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir := t.TempDir()
				var w watched
				s := open(t, at(dir, &w))
				spec := prepared(t, s, wasm)
				damage(t, codeFile(t, dir))
				if when == "before the process" {
					s = open(t, at(dir, &w))
					spec = prepared(t, s, wasm)
				}
				g := started(t, s, spec)
				drain(g)
				if e := g.Exit(); e.Kind != sandbox.ExitExited || e.Code != 9 {
					t.Errorf("ended as %+v", e)
				}
				n, audits := w.count()
				noticed := name != "no entry.json" || when == "before the process"
				if noticed && name != "a file beside it" &&
					(n != 2 || len(audits) != 1 || !strings.HasPrefix(audits[0], "cache_entry_bad: ")) {
					t.Errorf("compiled %d times, audits %q", n, audits)
				}
			})
		}
	}
}

func TestLooseCacheIsDropped(t *testing.T) {
	wasm := raw().bytes()
	for name, loosen := range map[string]func(code string) error{
		"mode of the code":    func(code string) error { return os.Chmod(code, 0o666) },
		"mode of a directory": func(code string) error { return os.Chmod(filepath.Dir(code), 0o777) },
		"a link": func(code string) error {
			return os.Symlink("/etc",
				filepath.Join(filepath.Dir(code), "link"))
		},
		"another owner's entry": func(code string) error { return os.Chown(code, 12345, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 && strings.Contains(name, "owner") {
				t.Skip("only root can give files away")
			}
			dir := t.TempDir()
			var w watched
			prepared(t, open(t, at(dir, &w)), wasm)
			if err := loosen(codeFile(t, dir)); err != nil {
				t.Fatal(err)
			}
			prepared(t, open(t, at(dir, &w)), wasm)
			if n, audits := w.count(); n != 2 || len(audits) != 1 || !strings.HasPrefix(audits[0], "cache_dropped: ") {
				t.Errorf("compiled %d times, audits %q", n, audits)
			}
		})
	}
}

// A cache that cannot be trusted is deleted, so it must be one.
func TestForeignDirectoryIsNoCache(t *testing.T) {
	dir := t.TempDir()
	thesis := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(thesis, []byte("ten years of work"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := sandbox.Open(t.Context(), sandbox.Options{CacheDir: dir, BuildID: "any", Engine: "any", Prespawn: -1})
	if !errors.Is(err, sandbox.ErrNoCache) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("%v; want ErrNoCache and the file's name", err)
	}
	if b, err := os.ReadFile(thesis); string(b) != "ten years of work" {
		t.Errorf("the file is gone: %v", err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	dir := t.TempDir()
	var w watched
	s := open(t, at(dir, &w), func(o *sandbox.Options) { o.CacheBytes = 1 })
	one, two := prepared(t, s, raw().bytes()), prepared(t, s, raw(opUnreachable).bytes())
	codeFile(t, dir) // exactly one is left
	if s.Footprint() != 1 {
		t.Errorf("%d entries remembered", s.Footprint())
	}
	for _, spec := range []sandbox.Spec{two, one} { // and the other one comes back
		g := started(t, s, spec)
		drain(g)
	}
	if n, _ := w.count(); n != 3 {
		t.Errorf("compiled %d times", n)
	}
}

func TestCompilationHasLimits(t *testing.T) {
	illTyped := raw(opDrop).bytes() // drops from an empty stack
	task, err := taskGuest()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		wasm []byte
		set  func(*sandbox.Options)
		code string
	}{
		{"ill-typed", illTyped, func(*sandbox.Options) {}, sandbox.CodeCompileFailed},
		{"no time", task, func(o *sandbox.Options) { o.CompileWall = 100 * time.Millisecond }, sandbox.CodeCompileTimeout},
		{"no memory", task, func(o *sandbox.Options) { o.CompileData = 96 << 20 }, sandbox.CodeCompileMemory},
		{"no room", task, func(o *sandbox.Options) { o.EntryBytes = 1 << 20 }, sandbox.CodeCompileFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, func(o *sandbox.Options) { o.CacheDir = dir }, tt.set)
			m, err := sandbox.CheckModule(tt.wasm, sandbox.ModuleLimits{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Prepare(t.Context(), m, tt.wasm)
			var f *sandbox.Failure
			if !errors.As(err, &f) || f.Code != tt.code {
				t.Errorf("prepared with %v, want %s", err, tt.code)
			} else {
				t.Log(err)
			}
			left, err := fs.Glob(os.DirFS(dir), "*-*")
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		})
	}
}

// Many that open a new cache at once agree on one key.
func TestOneKey(t *testing.T) {
	for range 50 {
		path := filepath.Join(t.TempDir(), "hmac.key")
		keys := make([]string, 8)
		var work sync.WaitGroup
		for i := range keys {
			work.Go(func() {
				key, err := sandbox.LoadKey(path)
				if err != nil {
					t.Error(err)
				}
				keys[i] = string(key)
			})
		}
		work.Wait()
		if len(slices.Compact(keys)) != 1 {
			t.Fatal("several keys")
		}
	}
}

// A key that a power cut left empty is replaced, not an error for ever or once.
func TestKeyCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hmac.key")
	for _, left := range []string{"", "short"} {
		if err := os.WriteFile(path, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := sandbox.LoadKey(path)
		if err != nil || len(key) != 32 {
			t.Fatalf("after %q: %d bytes, %v", left, len(key), err)
		}
		if again, err := sandbox.LoadKey(path); err != nil || string(again) != string(key) {
			t.Errorf("after %q: another key the second time, %v", left, err)
		}
	}
}
