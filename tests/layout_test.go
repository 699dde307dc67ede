// Package tests has tests of the repository as a whole.
package tests

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sluicehost/sluice"

// A room is a package, what it may import of ours, and which third-party
// modules it alone owns. The table is docs/ARCHITECTURE.md as a test.
type room struct {
	imports []string
	owns    []string
}

// below stands for every room in a room's own folder.
const below = "below"

var rooms = map[string]room{
	"":                    {imports: []string{"host/cli"}},
	"abi":                 {imports: []string{below}},
	"abi/strictjson":      {}, // and whoever may import abi
	"guest-sdk":           {imports: []string{below, "abi"}},
	"guest-sdk/encode":    {imports: []string{"abi/strictjson"}},
	"guest-sdk/guesthttp": {imports: []string{"abi", "guest-sdk"}},
	"guest-sdk/guesttest": {imports: []string{"abi", "guest-sdk", "host/scope"}},
	"store":               {imports: []string{"abi"}},
	"store/badger": {imports: []string{below, "store"},
		owns: []string{"github.com/dgraph-io/badger/v4"}},
	"store/badger/bulk":     {imports: []string{"store"}},
	"store/postgres":        {imports: []string{"abi", "store"}, owns: []string{"github.com/jackc/pgx/v5"}},
	"store/postgres/server": {},
	"store/drivers":         {imports: []string{"store", "store/badger", "store/postgres"}},
	"store/storetest": {imports: []string{"abi", "store"},
		owns: []string{"github.com/google/go-cmp", "pgregory.net/rapid"}},
	"host/worker": {imports: []string{"abi", "host/jail"},
		owns: []string{"github.com/tetratelabs/wazero", "golang.org/x/sys"}},
	"host/jail": {owns: []string{"golang.org/x/sys", "golang.org/x/net"}},
	"host/sandbox": {imports: []string{"abi", "host/jail", "host/patience"},
		owns: []string{"golang.org/x/sys"}},
	"host/patience": {},
	"host/scope":    {imports: []string{"abi"}},
	"host/grant":    {imports: []string{"abi", "store", "host/binding"}},
	"host/run": {imports: []string{"abi", "store", "host", "host/binding", "host/run/redact",
		"host/sandbox", "host/scope"}, owns: []string{"github.com/oklog/ulid/v2"}},
	"host/binding":    {imports: []string{"abi", "store", "host"}},
	"host/run/redact": {imports: []string{"abi"}},
	"host/filesystem": {imports: []string{"abi", "store", "host", "host/binding"},
		owns: []string{"golang.org/x/sys"}},
	"host/egress":          {imports: []string{"abi", "store"}, owns: []string{"golang.org/x/net", "golang.org/x/time"}},
	"host/network":         {imports: []string{"abi", "store", "host", "host/binding", "host/egress"}},
	"host/private":         {},
	"host/audit":           {imports: []string{"abi", "host/private"}},
	"host/oauth":           {imports: []string{"abi"}, owns: []string{"golang.org/x/oauth2"}},
	"host/oauth/oauthtest": {},
	"host/vault": {imports: []string{"abi", "store", "host/private"},
		owns: []string{"filippo.io/age", "github.com/zalando/go-keyring"}},
	"host/signature": {owns: []string{"aead.dev/minisign"}},
	// the vault seals for this host, a backup for who is elsewhere
	"host/backup": {imports: []string{"abi", "store", "host/vault", "host/private"},
		owns: []string{"filippo.io/age"}},
	"host/interaction": {imports: []string{"abi", "store", "host", "host/run"}},
	"host/controller":  {imports: []string{"store", "host/run", "host/timeline"}},
	"host/schedule": {imports: []string{"abi", "store", "host"},
		owns: []string{"github.com/robfig/cron/v3"}},
	"host/browser/page":   {},
	"host/browser/engine": {imports: []string{"abi", "host/browser/page"}},
	"host/browser/chromium": {imports: []string{"host/egress", "host/browser/page", "host/patience"},
		owns: []string{"github.com/chromedp/chromedp", "github.com/chromedp/cdproto", "golang.org/x/sys"}},
	"host/browser/fleet": {imports: []string{"abi", "host/browser/page", "host/browser/engine",
		"host/browser/chromium", "host/patience"}, owns: []string{"golang.org/x/sys"}},
	"host/browser/view": {imports: []string{"host/browser/page", "host/patience"}},
	"host/browser": {imports: []string{below, "abi", "store", "host", "host/binding",
		"host/egress", "host/patience"}},
	"host/telemetry": {imports: []string{"store"},
		owns: []string{"github.com/prometheus", "go.opentelemetry.io"}},
	"host/api/client": {imports: []string{"abi", "store", "host", "host/timeline", "host/patience",
		"host/access", "host/webhook"}},
	"host":            {imports: []string{"abi", "store"}},
	"host/timeline":   {imports: []string{"abi", "store", "host/run/redact"}},
	"host/api/stream": {imports: []string{"store", "host/timeline"}},
	"host/access":     {imports: []string{"store"}, owns: []string{"github.com/oklog/ulid/v2"}},
	"host/webhook": {imports: []string{"store", "host/timeline"},
		owns: []string{"github.com/oklog/ulid/v2"}},
	"host/destination": {imports: []string{"abi", "abi/strictjson", "store", "host", "host/private"},
		owns: []string{"github.com/robfig/cron/v3"}},
	"host/destination/sqlite": {imports: []string{"abi", "host/destination"},
		owns: []string{"github.com/ncruces/go-sqlite3"}},
	"host/destination/destinationtest": {imports: []string{"abi", "store", "host/destination"},
		owns: []string{"github.com/google/go-cmp"}},
	"host/cache": {imports: []string{"store", "host"}},
	"host/search": {imports: []string{"abi", "abi/strictjson", "store", "host", "host/cache"},
		owns: []string{"github.com/ncruces/go-sqlite3", "golang.org/x/text"}},
	"host/query": {imports: []string{"abi", "store", "host", "host/cache", "host/destination", "host/destination/sqlite"},
		owns: []string{"github.com/ncruces/go-sqlite3"}},
	"host/export": {imports: []string{"abi", "store"}},
	"host/web": {imports: []string{"abi", "store", "host", "host/access", "host/private"},
		owns: []string{"github.com/gofiber/fiber/v2", "github.com/valyala/fasthttp", "github.com/fasthttp/websocket",
			"github.com/go-json-experiment/json", "golang.org/x/sys"}},
	"host/assistant": {imports: []string{"abi", "store", "host", "host/access", "host/cache", "host/query",
		"host/scope", "host/search"},
		owns: []string{"github.com/modelcontextprotocol/go-sdk"}},
	"host/hosttest": {imports: []string{"store", "host"}},
	"host/api": {imports: []string{"abi", "store",
		"host/access", "host", "host/export", "host/api/stream", "host/timeline", "host/web", "host/webhook"},
		owns: []string{"github.com/gofiber/fiber/v2", "go.yaml.in/yaml/v3"}},
	"dashboard": {imports: []string{"abi", "store",
		"host/access", "host", "host/export", "host/api/stream", "host/timeline", "host/web", "host/webhook"},
		owns: []string{"github.com/gofiber/fiber/v2", "rsc.io/qr"}},
	"host/destination/postgres": {imports: []string{"abi", "host/destination"}, owns: []string{"github.com/jackc/pgx/v5"}},
	"host/destination/files": {imports: []string{"abi",
		"host/destination", "host/export", "host/private"}, owns: []string{"golang.org/x/sys"}},
	"host/destination/webhook": {imports: []string{"abi", "abi/strictjson", "host/destination", "host/webhook"}},
	"host/destination/parquet": {imports: []string{
		"host/destination", "host/destination/files"},
		owns: []string{"github.com/klauspost/compress", "github.com/parquet-go/parquet-go"}},
	"host/app": {imports: []string{"abi", "store", "store/drivers", "host", "host/timeline",
		"host/access", "host/assistant", "host/audit", "host/backup", "host/binding", "host/browser", "host/browser/fleet",
		"host/browser/view", "host/controller", "host/destination", "host/destination/files", "host/destination/parquet",
		"host/destination/postgres", "host/destination/sqlite", "host/destination/webhook", "host/query", "host/search",
		"host/webhook", "host/egress", "host/filesystem", "host/grant", "host/interaction", "host/jail", "host/network",
		"host/oauth", "host/patience", "host/run", "host/sandbox", "host/schedule", "host/scope", "host/signature",
		"host/vault", "host/worker"}},
	"host/daemon": {imports: []string{"store", "host/app", "host/egress", "host/telemetry",
		"host/access", "host/api", "host", "host/api/stream", "host/timeline", "dashboard", "host/web", "host/webhook"}},
	"host/cli": {imports: []string{"abi", "store", "store/drivers", "store/postgres/server", "host/app", "host/daemon",
		"host/web", "host/access", "host", "host/export", "host/timeline", "host/api/client",
		"host/audit", "host/backup", "host/binding", "host/browser", "host/jail", "host/private", "host/run", "host/sandbox",
		"host/signature", "host/vault", "host/webhook", "host/destination", "host/destination/files",
		"host/destination/parquet", "host/destination/sqlite"},
		owns: []string{"github.com/spf13/cobra", "golang.org/x/term", "go.yaml.in/yaml/v3", "rsc.io/qr"}},
}

// exampleOf is the folder of the example that a package belongs to, or what no
// package is in.
func exampleOf(path string) string {
	if parts := strings.Split(path, "/"); parts[0] == "examples" && len(parts) > 1 {
		return "examples/" + parts[1]
	}
	return "-"
}

// Examples may import the SDK, packages of their own folder and what their job needs;
// tests may import everything.
func roomOf(path string) (room, bool) {
	if r, ok := rooms[path]; ok {
		return r, true
	}
	switch top, _, _ := strings.Cut(path, "/"); top {
	case "examples":
		return room{imports: []string{"abi", "guest-sdk", "guest-sdk/guesthttp"}, owns: []string{"*"}}, true
	case "tests":
		return room{imports: []string{"*"}, owns: []string{"*"}}, true
	}
	return room{}, false
}

type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

// TestLayout fails for a package that is missing in the table, an import that is not in
// its row, one in its row that it does not have, and a dependency outside of its room.
func TestLayout(t *testing.T) {
	used := map[string][]string{}
	for _, target := range []string{"linux/amd64", "wasip1/wasm"} {
		goos, goarch, _ := strings.Cut(target, "/")
		for _, p := range slices.Concat(list(t, "..", goos, goarch), list(t, "../examples", goos, goarch)) {
			path := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
			r, ok := roomOf(path)
			if !ok {
				t.Errorf("package %s is in no room: add it to the table in tests/layout_test.go and docs/ARCHITECTURE.md, or put it elsewhere", p.ImportPath)
				continue
			}
			for _, imported := range p.Imports {
				checkImport(t, path, r, imported)
				used[path] = append(used[path], strings.TrimPrefix(imported, module+"/"))
			}
		}
	}
	for path, r := range rooms {
		for _, may := range r.imports {
			if may != below && !slices.Contains(used[path], may) &&
				!(may == "abi" && slices.Contains(used[path], "abi/strictjson")) {
				t.Errorf("room %q may import %q, and does not", path, may)
			}
		}
	}
}

func checkImport(t *testing.T, path string, r room, imported string) {
	t.Helper()
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		if ours == "abi/strictjson" && slices.Contains(r.imports, "abi") {
			return
		}
		if !slices.Contains(r.imports, ours) && !slices.Contains(r.imports, "*") &&
			!(slices.Contains(r.imports, below) && strings.HasPrefix(ours, path+"/")) &&
			!strings.HasPrefix(ours, exampleOf(path)+"/") {
			t.Errorf("room %q may not import %q", path, ours)
		}
		return
	}
	if !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return // standard library
	}
	owned := slices.ContainsFunc(r.owns, func(o string) bool {
		return o == "*" || imported == o || strings.HasPrefix(imported, o+"/")
	})
	if !owned {
		t.Errorf("room %q may not use %s: one third-party dependency, one room", path, imported)
	}
}

func list(t *testing.T, dir, goos, goarch string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Standard", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, said.String())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestTopLevel fails for a folder that the layout does not have.
func TestTopLevel(t *testing.T) {
	allowed := []string{
		"host", "abi", "guest-sdk", "dashboard", "store", "examples", "tests", "docs", ".ci", ".git",
		"main.go", "go.mod", "go.sum", "README.md", "Makefile", "CHANGELOG.md", "LICENSE", ".gitignore",
	}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if slices.Contains(allowed, e.Name()) {
			continue
		}
		if exec.Command("git", "-C", "..", "check-ignore", "-q", e.Name()).Run() == nil {
			continue
		}
		t.Errorf("%s does not belong at the top level", e.Name())
	}
}

// TestNoDrawers fails for packages with names that say nothing, such as util.
func TestNoDrawers(t *testing.T) {
	for _, p := range list(t, "..", "linux", "amd64") {
		for _, part := range strings.Split(p.ImportPath, "/") {
			if slices.Contains([]string{"util", "utils", "common", "types", "helpers", "models", "misc"}, part) {
				t.Errorf("package %s: name it after what it holds", p.ImportPath)
			}
		}
	}
}

// TestNoDefaults: no code of the host uses net/http's defaults, which follow the
// proxies of the environment and ignore the network policy.
func TestNoDefaults(t *testing.T) {
	banned := []string{"http.DefaultClient", "http.DefaultTransport", "ProxyFromEnvironment", "http.Get(",
		"http.Post(", "http.Head("}
	for _, dir := range []string{"../host", "../store", "../abi"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			for _, name := range banned {
				if bytes.Contains(text, []byte(name)) {
					t.Errorf("%s uses %s", path, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
