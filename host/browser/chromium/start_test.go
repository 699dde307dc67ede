//go:build unix

package chromium_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// What a browser runs with: its uid, its sandbox, its environment, its flags.
func TestStartedProcess(t *testing.T) {
	o := options(t)
	b := started(t, o)
	proc := "/proc/" + strconv.Itoa(b.PID())

	line, err := os.ReadFile(proc + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	o.Window.Width, o.Window.Height = 1280, 800
	want := append([]string{o.Binary.Path}, chromium.Arguments(o, true)...)
	if diff := cmp.Diff(want, strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")); diff != "" {
		t.Errorf("command line: -want +got\n%s", diff)
	}

	environ, err := os.ReadFile(proc + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00")
	slices.Sort(got)
	wantEnv := []string{"GOOGLE_API_KEY=no", "GOOGLE_DEFAULT_CLIENT_ID=no", "GOOGLE_DEFAULT_CLIENT_SECRET=no",
		"HOME=" + o.Home, "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + o.Home}
	if diff := cmp.Diff(wantEnv, got); diff != "" {
		t.Errorf("environment: -want +got\n%s", diff)
	}

	if group, err := syscall.Getpgid(b.PID()); err != nil || group != b.PID() {
		t.Errorf("process group %d, %v, want its own", group, err)
	}
	var info syscall.Stat_t
	if err := syscall.Stat(o.Profile, &info); err != nil || int(info.Uid) != effective(o) || info.Mode&0o777 != 0o700 {
		t.Errorf("profile: uid %d, mode %o, %v", info.Uid, info.Mode, err)
	}
	if err := syscall.Stat(proc, &info); err != nil || int(info.Uid) != effective(o) {
		t.Errorf("process: uid %d, %v; want %d", info.Uid, err, effective(o))
	}
	if f := b.Facts(); f.Sandbox != "on" || f.Undecodable != 0 || f.Version == "" || f.Egress != chromium.ModeFlags {
		t.Errorf("facts: %+v", f)
	}
	name, major := b.Product()
	if name != "Chrome" || major < 100 || !strings.Contains(b.Agent(), "Chrome/"+strconv.Itoa(major)) {
		t.Errorf("product %q %d, agent %q", name, major, b.Agent())
	}
	if fds := descriptors(t, b.PID()); fds["3"] == "" || fds["4"] == "" {
		t.Errorf("no pipes: %v", fds)
	}
}

func effective(o chromium.Options) int {
	if o.UID == 0 {
		return os.Geteuid()
	}
	return o.UID
}

func descriptors(t *testing.T, pid int) map[string]string {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()], _ = os.Readlink(filepath.Join(dir, e.Name()))
	}
	return all
}

// The command line is the library's list with ours laid over it, read from the library
// itself.
func TestArgumentsAreTheLibrarys(t *testing.T) {
	var library []string
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("/nonexistent"),
		chromedp.UserDataDir("/profile"),
		chromedp.Flag("no-sandbox", false), chromedp.Flag("remote-debugging-pipe", true),
		chromedp.ModifyCmdFunc(func(c *exec.Cmd) { library = c.Args[1:] }))
	for _, f := range chromium.Flags("http://127.0.0.1:9", 1280, 800) {
		if f.Value == "" {
			opts = append(opts, chromedp.Flag(f.Name, true))
		} else {
			opts = append(opts, chromedp.Flag(f.Name, f.Value))
		}
	}
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	defer cancel()
	ctx, end := chromedp.NewContext(alloc)
	defer end()
	if err := chromedp.Do(ctx); err == nil {
		t.Fatal("it started")
	}
	o := chromium.Options{Profile: "/profile", Proxy: "http://127.0.0.1:9"}
	o.Window.Width, o.Window.Height = 1280, 800
	ours := chromium.Arguments(o, true)
	if !slices.Contains(ours, "--disable-dev-shm-usage") { // it depends on the machine
		library = slices.DeleteFunc(library, func(a string) bool { return a == "--disable-dev-shm-usage" })
	}
	slices.Sort(library)
	slices.Sort(ours)
	if diff := cmp.Diff(library, ours); diff != "" {
		t.Errorf("-library +ours\n%s", diff)
	}
	names := map[string]bool{}
	for _, a := range ours {
		name, _, _ := strings.Cut(a, "=")
		if names[name] {
			t.Errorf("%s is there twice", name)
		}
		names[name] = true
	}
	if names["--remote-debugging-port"] || names["--no-sandbox"] {
		t.Error("a flag that must not be there")
	}
}

// What no browser is started with.
func TestStartRefuses(t *testing.T) {
	good := chromium.Options{Binary: chromium.Binary{Path: "/nonexistent"}, Profile: "/p", Home: "/h",
		Proxy: "http://127.0.0.1:9"}
	if os.Geteuid() == 0 {
		good.UID, good.GID = 200000, 200000
	}
	for name, c := range map[string]struct {
		change func(*chromium.Options)
		want   error
	}{
		"nothing found":     {func(o *chromium.Options) { o.Binary = chromium.Binary{} }, chromium.ErrMissing},
		"no proxy":          {func(o *chromium.Options) { o.Proxy = "" }, chromium.ErrUnsafe},
		"a socks proxy":     {func(o *chromium.Options) { o.Proxy = "socks5://127.0.0.1:9" }, chromium.ErrUnsafe},
		"a proxy with more": {func(o *chromium.Options) { o.Proxy = "http://127.0.0.1:9/ --no-sandbox" }, chromium.ErrUnsafe},
		"shell in the open": {func(o *chromium.Options) { o.Binary.Shell = true }, chromium.ErrUnsafe},
		"relative profile":  {func(o *chromium.Options) { o.Profile = "p" }, chromium.ErrStart},
		"no such profile":   {func(*chromium.Options) {}, chromium.ErrStart},
		"negative uid":      {func(o *chromium.Options) { o.UID = -1 }, chromium.ErrUnsafe},
		"uid of everybody":  {func(o *chromium.Options) { o.UID, o.GID = 1<<32-1, 1<<32-1 }, chromium.ErrUnsafe},
	} {
		o := good
		c.change(&o)
		if _, err := chromium.Start(t.Context(), o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if os.Geteuid() == 0 {
		o := good
		o.UID = 0
		if _, err := chromium.Start(t.Context(), o); !errors.Is(err, chromium.ErrUnsafe) {
			t.Errorf("as root: %v", err)
		}
	}
}

// A program that is no browser, and one that says nothing, do not stay.
func TestStartFails(t *testing.T) {
	o := options(t)
	o.Binary.Path = "/bin/false"
	if _, err := chromium.Start(t.Context(), o); !errors.Is(err, chromium.ErrStart) {
		t.Errorf("a program that ends: %v", err)
	}
	o.Binary.Path = filepath.Join(openDir(t), "browser")
	write(t, o.Binary.Path, "#!/bin/sh\nsleep 60 & sleep 60\n", 0o755)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := chromium.Start(ctx, o); !errors.Is(err, chromium.ErrStart) {
		t.Errorf("a program that says nothing: %v", err)
	}
	write(t, o.Binary.Path, "#!/bin/sh\nwhile :; do printf '{}\\0' >&4; done\n", 0o755)
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := chromium.Start(ctx, o); !errors.Is(err, chromium.ErrStart) {
		t.Errorf("a program that says too much: %v", err)
	}
	if left := owned(o); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
