package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// A direct caller has the host's side in the same process.
type direct struct {
	ctx   context.Context
	fs    *filesystem.FS
	calls int
	by    map[abi.Call]int
}

func (d *direct) call(c abi.Call, req []byte) ([]byte, abi.Errno) {
	d.calls++
	d.by[c]++
	return d.fs.Handle(d.ctx, c, req)
}

// reset forgets what was counted.
func (d *direct) reset() { d.calls, d.by = 0, map[abi.Call]int{} }

// dirs are the host paths of a test's roots.
type dirs struct{ data, out string }

// openDirect opens /data, /out and /tmp.
func openDirect(t testing.TB, q filesystem.Quotas) (*direct, dirs) {
	t.Helper()
	base := t.TempDir()
	d := dirs{base + "/data", base + "/out"}
	var roots []store.Mount
	for _, path := range []string{d.data, d.out} {
		must(t, os.Mkdir(path, 0o755))
		r, err := filesystem.Approve(path, path == d.out, "")
		must(t, err)
		r.Name = filepath.Base(path)
		roots = append(roots, r)
	}
	f, err := filesystem.Open(roots, base+"/run", q)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return &direct{ctx: t.Context(), fs: f, by: map[abi.Call]int{}}, d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// compiled keeps the guest's code between tests, which is slow to make.
var compiled = wazero.NewCompilationCache()

// A program is the guest, compiled.
type program struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

func compileGuest(t testing.TB) program {
	t.Helper()
	wasm, err := build.Guest("host/worker/testdata/filesguest")
	must(t, err)
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(compiled))
	t.Cleanup(func() { r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	code, err := r.CompileModule(ctx, wasm)
	must(t, err)
	return program{r, code}
}

// run runs the guest on the files of d and returns what it printed.
func (p program) run(t testing.TB, d *direct, steps ...string) (string, error) {
	t.Helper()
	mounts := wazero.NewFSConfig()
	for i, m := range d.fs.Mounts() {
		mounts = mounts.(sysfs.FSConfig).WithSysFSMount(newRemoteFS(d, uint32(i)), m.Path)
	}
	var out bytes.Buffer
	cfg := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"guest"},
		steps...)...).WithStdout(&out).WithStderr(&out).
		WithSysWalltime().WithSysNanotime().WithRandSource(rand.Reader).WithFSConfig(mounts)
	mod, err := p.runtime.InstantiateModule(t.Context(), p.code, cfg)
	if mod != nil {
		mod.Close(t.Context())
	}
	return out.String(), err
}

// bigFile has every eight bytes say their own offset.
func bigFile(size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		fmt.Fprintf(&b, "%07x\n", b.Len())
	}
	return b.Bytes()
}

// Os.Open, os.ReadDir, fs.WalkDir and the rest work unchanged.
func TestGuestSeesFiles(t *testing.T) {
	p := compileGuest(t)
	d, at := openDirect(t, filesystem.DefaultQuotas())
	for path, content := range map[string]string{"a": "hello", "empty": "", "sub/deep/b": "world",
		"sub/c": strings.Repeat("c", 100_000)} {
		must(t, os.MkdirAll(filepath.Dir(at.data+"/"+path), 0o755))
		must(t, os.WriteFile(at.data+"/"+path, []byte(content), 0o644))
	}
	must(t, os.Symlink("sub/c", at.data+"/inside"))
	got, err := p.run(t, d, "walk")
	if err != nil {
		t.Fatal(err, got)
	}
	want := `./
a ---------- 5 "hello"
empty ---------- 0 ""
inside L--------- 100000 "cccccccccccccccccccc"
sub/
sub/c ---------- 100000 "cccccccccccccccccccc"
sub/deep/
sub/deep/b ---------- 5 "world"
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if d.by[abi.CallFileClose] != d.by[abi.CallFileOpen]-6 { // all but three small files and three directories
		t.Errorf("calls: %v", d.by)
	}
}

func TestGuestWritesFiles(t *testing.T) {
	p := compileGuest(t)
	d, at := openDirect(t, filesystem.DefaultQuotas())
	must(t, os.Symlink("/etc/passwd", at.data+"/escape"))
	must(t, os.Symlink("escape", at.data+"/inside"))
	must(t, os.Symlink("loop", at.data+"/loop"))
	must(t, os.WriteFile(at.data+"/big", bigFile(3_000_000), 0o644))
	got, err := p.run(t, d, "write", "errors", "seek")
	if err != nil {
		t.Fatal(err, got)
	}
	if diff := cmp.Diff("/out written\n/tmp written\nrefused\nsought 3000000\n", got); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkGuestSmallFiles is what a directory of loose objects costs: one call
// a file.
func BenchmarkGuestSmallFiles(b *testing.B) {
	p := compileGuest(b)
	d, at := openDirect(b, filesystem.DefaultQuotas())
	const files = 10_000
	must(b, os.Mkdir(at.data+"/many", 0o755))
	for i := range files {
		must(b, os.WriteFile(fmt.Sprintf("%s/many/%05d", at.data, i), make([]byte, 300), 0o644))
	}
	d.reset()
	for b.Loop() {
		if out, err := p.run(b, d, "bench"); err != nil || out != "10000 3000000 true\n" {
			b.Fatal(err, out)
		}
	}
	b.ReportMetric(float64(d.calls)/float64(b.N)/files, "calls/file")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/files, "µs/file")
}

// BenchmarkGuestStream reads 64 MiB in steps of 4 KiB.
func BenchmarkGuestStream(b *testing.B) {
	p := compileGuest(b)
	d, at := openDirect(b, filesystem.DefaultQuotas())
	must(b, os.WriteFile(at.data+"/big", bigFile(64<<20), 0o644))
	b.SetBytes(64 << 20)
	d.reset()
	for b.Loop() {
		if out, err := p.run(b, d, "stream"); err != nil {
			b.Fatal(err, out)
		}
	}
	b.ReportMetric(float64(d.calls)/float64(b.N), "calls")
}
