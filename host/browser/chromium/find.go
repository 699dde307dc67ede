package chromium

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehost/sluice/host/patience"
)

// A Binary is a browser executable, not a script that starts one.
type Binary struct {
	Path    string // absolute, with links resolved
	Product string // Chromium, Google Chrome, …
	Version string // 148.0.7778.167
	Major   int
	// Shell is true for the headless shell, which ignores a flag that confines it to the gate and
	// so must run in a network namespace.
	Shell bool
}

// names are searched on PATH, in this order.
var names = []string{"chromium", "google-chrome", "chromium-headless-shell"}

// install tells an owner how to get a browser.
const install = "install one with `apt-get install chromium` (or chromium-headless-shell) on Debian and Ubuntu, " +
	"`dnf install chromium` on Fedora, `apk add chromium` on Alpine"

// Find returns the browser to use: the configured one if a path is configured, otherwise the first
// usable one on PATH. namespace says that browsers get a network namespace of their own; without it
// the headless shell is skipped. Find starts no browser: each candidate is asked for its version,
// for at most 5 s on an idle machine and without root privileges.
//
// ErrMissing lists what was tried and how to install a browser, ErrUnsafe means that only unusable
// ones were found, ErrSlow that one did not answer.
func Find(ctx context.Context, configured string, namespace bool) (Binary, error) {
	if configured != "" {
		bin, err := examine(ctx, configured)
		if errors.Is(err, ErrSlow) {
			return Binary{}, err
		}
		if err != nil {
			return Binary{}, fmt.Errorf(
				"%w: the configured %s: %w; name another with browser.path or SLUICE_BROWSER, or none and %s", ErrMissing,
				configured, err, install)
		}
		return bin, bin.safe(namespace)
	}
	var tried []string
	var unsafe, slow error
	for _, name := range names {
		bin, err := examine(ctx, name)
		if err == nil {
			if err = bin.safe(namespace); err == nil {
				return bin, nil
			}
			unsafe = err
		}
		if errors.Is(err, ErrSlow) {
			slow = errors.Join(slow, err)
		}
		if ctx.Err() != nil {
			return Binary{}, ctx.Err()
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", name, err))
	}
	if slow != nil { // a slow one is not missing
		return Binary{}, slow
	}
	if unsafe != nil {
		return Binary{}, unsafe
	}
	return Binary{}, fmt.Errorf("%w: tried %s; %s", ErrMissing, strings.Join(tried, ", "), install+", or set browser.path")
}

// safe refuses a browser that leaks packets where only its flags confine it.
func (b Binary) safe(namespace bool) error {
	if b.Shell && !namespace {
		return fmt.Errorf("%w: %s ignores the WebRTC policy and leaks packets; it is used only where this host may make "+
			"network namespaces: run the host as root, or install chromium", ErrUnsafe, filepath.Base(b.Path))
	}
	return nil
}

// examine returns the browser at a name or path.
func examine(ctx context.Context, name string) (Binary, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return Binary{}, errors.New("not on PATH")
	}
	if err != nil {
		return Binary{}, reason(err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return Binary{}, err
	}
	if path, err = follow(path); err != nil {
		return Binary{}, err
	}
	product, version, major, err := askVersion(ctx, path)
	if err != nil {
		return Binary{}, err
	}
	return Binary{Path: path, Product: product, Version: version, Major: major, Shell: isShell(path)}, nil
}

// isShell recognises the headless shell by its packages' file names.
func isShell(path string) bool {
	base := strings.ReplaceAll(filepath.Base(path), "_", "-")
	return strings.Contains(base, "headless-shell")
}

// reason drops the path that an error repeats.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var e *exec.Error
	if errors.As(err, &e) {
		return reason(e.Err)
	}
	return err
}

// Bounds of wrapper scripts: bytes read, and nesting.
const (
	scriptBytes = 64 << 10
	scriptDepth = 4
)

var errWrapper = errors.New(
	"is a script whose browser cannot be made out: set browser.path to the executable that it starts")

// follow returns the executable behind a path. Links are resolved, and wrapper scripts are read,
// not run, since a wrapper would not pass on a kill and might add keys and extensions.
func follow(path string) (string, error) {
	for range scriptDepth {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", reason(err)
		}
		head, err := readHead(real)
		if err != nil {
			return "", reason(err)
		}
		if !bytes.HasPrefix(head, []byte("#!")) {
			return real, executable(real)
		}
		if path = execTarget(real, head); path == "" {
			return "", errWrapper
		}
	}
	return "", errWrapper
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 -- the operator's browser
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, scriptBytes))
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return reason(err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return errors.New("is not an executable file")
	}
	return nil
}

var (
	assigns = lazily(`^\s*(?:export\s+|readonly\s+)?([A-Za-z_][A-Za-z0-9_]*)=(\S*)\s*$`)
	hands   = lazily(`^\s*(?:[^#]*[;&|]\s*)?exec\s+(.*)$`)
	refers  = lazily(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)
)

// execTarget returns the program that a script starts, by its last exec of an existing file, or ""
// if there is none. It understands plain assignments and takes an unknown variable before a slash
// for the script's own directory, as vendors write their wrappers.
func execTarget(script string, text []byte) string {
	known := map[string]string{}
	found := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, scriptBytes)
	for lines.Scan() {
		line := lines.Text()
		if m := assigns().FindStringSubmatch(line); m != nil {
			if v, ok := expand(unquote(m[2]), known, ""); ok {
				known[m[1]] = v
			}
			continue
		}
		m := hands().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		target, ok := expand(program(m[1]), known, filepath.Dir(script))
		if ok && filepath.IsAbs(target) && target != script && executable(target) == nil && !debugger(target) {
			found = target
		}
	}
	return found
}

// program returns the first word of a command line that is not an option of exec.
func program(line string) string {
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "-a": // takes a name
			i++
		case strings.HasPrefix(words[i], "-"):
		default:
			return unquote(words[i])
		}
	}
	return ""
}

func unquote(word string) string { return strings.Trim(word, `"'`) }

// expand substitutes variables. An unknown variable is replaced by here, if given, where it is all
// that precedes the first slash; otherwise expand reports false.
func expand(word string, known map[string]string, here string) (string, bool) {
	if strings.ContainsAny(word, "`(*?") {
		return "", false
	}
	ok := true
	out := refers().ReplaceAllStringFunc(word, func(ref string) string {
		v, is := known[strings.Trim(ref, "${}")]
		switch {
		case is:
			return v
		case here != "" && strings.HasPrefix(word, ref+"/"):
			return here
		}
		ok = false
		return ""
	})
	return out, ok && !strings.Contains(out, "$")
}

// debugger knows what wrappers exec when they are asked to.
func debugger(path string) bool {
	base := filepath.Base(path)
	return base == "gdb" || base == "valgrind" || base == "man" || base == "env" || base == "sh" || base == "bash"
}

const (
	// versionLimit is how long an idle machine may take to ask a browser what it is.
	versionLimit = 5 * time.Second
	// versionAgain is how long to wait for what the machine is short of.
	versionAgain = 200 * time.Millisecond
)

// banner is what a Chromium prints for --version. Product names are letters and
// spaces: "Chromium 148.0.7778.167 built on Debian", "Google Chrome 150.0.7000.1".
var banner = lazily(`^([A-Za-z][A-Za-z ]{0,60}[A-Za-z]) (([0-9]{1,5})(?:\.[0-9]{1,9}){1,3})\b`)

// askVersion runs an executable with --version, which starts no browser, under no
// rights of this host's root and with the environment that a browser has. ErrSlow says
// that it did not answer in the time that the machine's load allows, or could not be
// run for want of processes or memory.
func askVersion(ctx context.Context, path string) (product, version string, major int, err error) {
	ctx, cancel := patience.Within(ctx, versionLimit)
	defer cancel()
	for {
		product, version, major, err = askOnce(ctx, path)
		if !scarce(err) || ctx.Err() != nil {
			return product, version, major, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(versionAgain):
		}
	}
}

// scarce reports an error that goes away when others have ended.
func scarce(err error) bool {
	for _, short := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}

func askOnce(ctx context.Context, path string) (product, version string, major int, err error) {
	cmd := exec.CommandContext(ctx, path, "--version") // #nosec G204 -- the operator's browser
	cmd.Env = environment("/nonexistent", "/nonexistent")
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	harmless(cmd)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	runtime.LockOSThread() // the process ends with the thread that started it
	err = cmd.Run()
	runtime.UnlockOSThread()
	if ctx.Err() != nil {
		return "", "", 0, fmt.Errorf("%w: %s does not answer --version: %w", ErrSlow, path, context.Cause(ctx))
	}
	if scarce(err) {
		return "", "", 0, fmt.Errorf("%w: %s does not run: %w", ErrSlow, path, err)
	}
	m := banner().FindStringSubmatch(strings.TrimSpace(out.String()))
	switch {
	case err != nil:
		return "", "", 0, fmt.Errorf("does not run: %w: %s", reason(err), out.line())
	case m == nil || strings.EqualFold(m[1], "snap"):
		return "", "", 0, fmt.Errorf("is not a Chromium: it says %q to --version", out.line())
	}
	major, err = strconv.Atoi(m[3])
	return m[1], m[2], major, err
}

// lazily compiles an expression when it is first used: it would cost every start of the program and of a worker.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
