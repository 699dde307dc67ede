// Package languages_test compiles examples/primes with the compilers of other languages,
// gives each module its manifest, and runs it in its jail. One in C imports the host's
// functions by docs/spec/sluice.h.
package languages_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/npm"
)

// TestMain also runs the worker: the sandbox starts this binary again.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

const example = "../../examples/primes"

// The compilers, each of which writes a module to a file.
var compilers = map[string]func(t *testing.T, out string){
	"C": func(t *testing.T, out string) {
		need(t, "wasm-ld", "lld")
		compile(t, need(t, "clang", "clang wasi-libc libclang-rt-dev-wasm32"), "--target=wasm32-wasi", "-O2", "-o", out,
			example+"/primes.c")
	},
	"C with sluice.h": func(t *testing.T, out string) {
		need(t, "wasm-ld", "lld")
		compile(t, need(t, "clang", "clang wasi-libc libclang-rt-dev-wasm32"), "--target=wasm32-wasi", "-O2", "-Wall",
			"-Wextra", "-Werror",
			"-I../../docs/spec", "-o", out, "testdata/primes_abi.c")
	},
	"Rust": func(t *testing.T, out string) {
		rustc, target := rust(t)
		compile(t, rustc, "--target", target, "-O", "-o", out, example+"/primes.rs")
	},
	"AssemblyScript": func(t *testing.T, out string) {
		dir := t.TempDir()
		for _, p := range npm.AssemblyScript {
			p.Unpack(t, dir)
		}
		compile(t, need(t, "node", "nodejs"), filepath.Join(dir, "node_modules/assemblyscript/bin/asc.js"),
			example+"/primes.ts", "-O", "--use", "abort=", "-o", out)
	},
}

func TestOtherLanguages(t *testing.T) {
	for language, compiler := range compilers {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "primes.wasm")
			compiler(t, file)
			h, err := app.Open(t.Context(), app.Options{Store: "memory:"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}()
			if _, err := h.Load(t.Context(), file, ""); err == nil {
				t.Fatal("a module without a manifest is taken for a connector")
			}
			connector, err := h.Embed(t.Context(), file, example+"/manifest.json")
			if err != nil {
				t.Fatal(err)
			}
			r, err := h.Start(t.Context(), app.RunRequest{Connector: connector})
			if err != nil {
				t.Fatal(err)
			}
			result, err := r.Do(t.Context())
			if err != nil || result.Status != abi.Succeeded || len(result.KnownGaps) > 0 {
				t.Fatalf("%+v, %v", result, err)
			}
			page, err := h.Store.Records(t.Context(), store.RecordQuery{Connection: "primes", Stream: "primes", Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			var last struct{ Value int }
			if n := len(page.Records); n != 25 || json.Unmarshal(page.Records[n-1].Data, &last) != nil || last.Value != 97 {
				t.Errorf("%d primes, the last is %d", len(page.Records), last.Value)
			}
		})
	}
}

// need returns the path of a program, or skips the test; .ci/run installs all of them.
func need(t *testing.T, program, packages string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("SKIPPED: %s is not installed; apt-get install %s", program, packages)
	}
	return path
}

// rust is a compiler that has the standard library for WASI, and its name for that:
// wasm32-wasi before Rust 1.78. Debian's may stand behind another.
func rust(t *testing.T) (compiler, target string) {
	t.Helper()
	need(t, "rustc", "rustc libstd-rust-dev-wasm32")
	for _, c := range []string{"rustc", "/usr/bin/rustc"} {
		for _, to := range []string{"wasm32-wasip1", "wasm32-wasi"} {
			dir, err := exec.Command(c, "--print", "target-libdir", "--target", to).Output() // #nosec G204: of this test
			if err != nil {
				continue
			}
			if std, _ := filepath.Glob(filepath.Join(string(dir[:max(len(dir)-1, 0)]), "libstd-*.rlib")); len(std) > 0 {
				return c, to
			}
		}
	}
	t.Skip("SKIPPED: rustc has no standard library for WASI; apt-get install libstd-rust-dev-wasm32")
	return "", ""
}

func compile(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil { // #nosec G204: of this test
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

// A module without the SDK collects from a server: examples/fetch, in plain C,
// under the same policy as any other.
func TestFetch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fetch.wasm")
	need(t, "wasm-ld", "lld")
	compile(t, need(t, "clang", "clang wasi-libc libclang-rt-dev-wasm32"), "--target=wasm32-wasi", "-O2", "-o", file,
		"../../examples/fetch/fetch.c")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if r.URL.Path == "/long" {
			_, _ = io.WriteString(w, strings.Repeat("ä and a line\n", 50_000))
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s \"welcome\"", r.Method, r.Header.Get("Accept"))
	}))
	defer site.Close()
	h, err := app.Open(t.Context(), app.Options{Store: "memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	connector, err := h.Embed(t.Context(), file, "../../examples/fetch/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		hosts      []string
		status     string
		body       func(string) bool
	}{
		{"approved", "/", []string{site.URL}, abi.Succeeded, func(b string) bool { return b == `GET text/plain "welcome"` }},
		{"long", "/long", []string{site.URL}, abi.Succeeded, func(b string) bool {
			return len(b) > 100_000 && len(b) <= 128<<10 && strings.HasPrefix(b, "ä and a line\n") && utf8.ValidString(b)
		}},
		{"not approved", "/", nil, abi.Failed, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := h.Start(t.Context(), app.RunRequest{
				Connector: connector, Connection: store.ConnectionID(strings.ReplaceAll(c.name, " ", "-")),
				Approved: store.Approved{Hosts: c.hosts}, Config: json.RawMessage(`{"url":"` + site.URL + c.path + `"}`),
			})
			if err != nil {
				t.Fatal(err)
			}
			result, err := r.Do(t.Context())
			if err != nil || result.Status != c.status {
				t.Fatalf("%+v, %v", result, err)
			}
			page, err := h.Store.Records(t.Context(),
				store.RecordQuery{Connection: store.ConnectionID(strings.ReplaceAll(c.name, " ", "-")),
					Stream: "answers", Limit: 10})
			if err != nil || c.body == nil && len(page.Records) > 0 || c.body != nil && len(page.Records) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			if c.body == nil {
				return
			}
			var got struct {
				Status int
				Body   string
			}
			if err := json.Unmarshal(page.Records[0].Data, &got); err != nil || got.Status != 200 || !c.body(got.Body) {
				t.Errorf("%d, %d bytes, %.80q, %v", got.Status, len(got.Body), got.Body, err)
			}
		})
	}
}
