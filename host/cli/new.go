package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
)

//go:embed templates
var templates embed.FS

// modulePath is this module's, which connectors written with the SDK require.
const modulePath = "github.com/sluicehost/sluice"

func (c buildCommands) newConnector() *cobra.Command {
	var kind, sdk string
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Begin a connector",
		Long: `Makes the directory NAME with a connector that builds, checks and runs as it is.

Templates: minimal, with the Go SDK and a test; stdio, with JSON lines and nothing
but the standard library.`,
		Example: "  sluice new mailbox\n  sluice new feed --template stdio",
		Args:    args(1, 1, "one name"),
		RunE:    func(_ *cobra.Command, a []string) error { return c.scaffold(a[0], kind, sdk) },
	}
	cmd.Flags().StringVar(&kind, "template", "minimal", "minimal or stdio")
	cmd.Flags().StringVar(&sdk, "sdk", "", "use the SDK in this checkout of sluice, `DIR`")
	return cmd
}

// A scaffold is what templates are filled with.
type scaffold struct {
	Name, Title string
	Go          string
	Version     string
	Replace     string
}

func (c buildCommands) scaffold(dir, kind, sdk string) error {
	name := filepath.Base(filepath.Clean(dir))
	if !abi.IsSlug(name) {
		return usagef("%q is no name for a connector: want lower-case letters, digits, - and _, beginning with a letter or digit", abi.Clean(name))
	}
	if _, err := fs.Stat(templates, path.Join("templates", kind)); err != nil || kind == "" ||
		strings.ContainsAny(kind, "/.") {
		return usagef("--template %s: want minimal or stdio", abi.Clean(kind))
	}
	s := scaffold{Name: name, Title: strings.ToUpper(name[:1]) + name[1:], Go: goVersion()}
	if kind != "stdio" {
		var err error
		if s.Version, s.Replace, err = sdkVersion(sdk); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil { // #nosec G301 -- source code, under the owner's umask
		if errors.Is(err, fs.ErrExist) {
			return usagef("%s exists already; name another, or remove it", dir)
		}
		return usage{err}
	}
	if err := fill(dir, path.Join("templates", kind), s); err != nil {
		return err
	}
	c.warnf("Made %s. Try: sluice run %s", dir, dir)
	return nil
}

// fill writes every file of a template.
func fill(dir, from string, s scaffold) error {
	all, err := template.ParseFS(templates, from+"/*.tmpl")
	if err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	for _, t := range all.Templates() {
		f, err := os.OpenFile(filepath.Join(dir, strings.TrimSuffix(t.Name(), ".tmpl")), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // #nosec G302 -- source code, under the owner's umask
		if err != nil {
			return fmt.Errorf("write connector: %w", err)
		}
		if err := errors.Join(t.Execute(f, s), f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", f.Name(), err)
		}
	}
	return nil
}

// goVersion returns the first release with the language of this program's toolchain.
func goVersion() string {
	parts := strings.SplitN(strings.TrimPrefix(runtime.Version(), "go"), ".", 3)
	if len(parts) < 2 || strings.ContainsAny(parts[0]+parts[1], "- ") {
		return "1.26.0"
	}
	return parts[0] + "." + parts[1] + ".0"
}

// sdkVersion returns what go.mod requires: this program's own version, or a checkout
// that replaces it, named by dir or the one this program was built from.
func sdkVersion(dir string) (version, replace string, err error) {
	if dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return "", "", usage{fmt.Errorf("--sdk: %w", err)}
		}
		if !isCheckout(dir) {
			return "", "", usagef("--sdk %s: not a checkout of %s", dir, modulePath)
		}
		return "v0.0.0", strconv.Quote(dir), nil
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Dir(filepath.Dir(filepath.Dir(file))); filepath.IsAbs(dir) && isCheckout(dir) {
			return "v0.0.0", strconv.Quote(dir), nil
		}
	}
	if v := app.ThisVersion().Version; strings.HasPrefix(v, "v") && !strings.Contains(v, "+") {
		return v, "", nil
	}
	return "", "", usagef("this program has no released version to require; name a checkout of %s with --sdk DIR",
		modulePath)
}

// isCheckout reports whether dir holds this module's source, outside of the
// module cache.
func isCheckout(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && !strings.Contains(filepath.ToSlash(dir), "/"+modulePath+"@") &&
		strings.HasPrefix(string(b), "module "+modulePath+"\n")
}
