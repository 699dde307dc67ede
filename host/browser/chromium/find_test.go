package chromium_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// fake is what this test binary says to --version, by the name it is called by: so
// a link to it stands for a browser.
func fake(name string) {
	switch name {
	case "chromium", "google-chrome":
		fmt.Println("Google Chrome 150.0.7000.1 beta")
	case "chromium-headless-shell", "headless_shell":
		fmt.Println("Chromium 149.0.1.2")
	case "snap":
		fmt.Println("snap    2.63\nsnapd   2.63")
	case "mute":
		time.Sleep(time.Hour) // not select {}: the runtime ends a program that can never go on
	}
	os.Exit(0)
}

// called links this test binary to a name.
func called(t *testing.T, dir, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text), 0o755)
	return path
}

// wrappers, as distributions write them, around a browser at @REAL@, and whether the
// browser can be made out.
var wrappers = map[string]struct {
	script string
	found  bool
}{
	"plain":             {"#!/bin/sh\nexec @REAL@ \"$@\"\n", true},
	"Debian":            {"#!/bin/sh\nAPPNAME=chromium\nLIBDIR=@DIR@\nGDB=/usr/bin/gdb\nif [ $want_debug -eq 1 ] ; then\n  $GDB \"$LIBDIR/$APPNAME\"\nelse\n    exec $LIBDIR/$APPNAME $CHROMIUM_FLAGS \"$@\"\nfi\n", true},
	"Google":            {"#!/bin/bash\nexport CHROME_WRAPPER=\"`readlink -f \"$0\"`\"\nHERE=\"`dirname \"$CHROME_WRAPPER\"`\"\nexec cat < /dev/null > /dev/null &\nexec -a \"$0\" \"$HERE/chromium\" \"$@\"\n", true},
	"braces and quotes": {"#!/bin/sh\nexport DIR_='@DIR@'\nexec \"${DIR_}/chromium\" --flag\n", true},
	"after a test":      {"#!/bin/sh\n[ -x @REAL@ ] && exec @REAL@ \"$@\"\n", true},
	"computed":          {"#!/bin/sh\nexec $(which chromium-something) \"$@\"\n", false},
	"no exec":           {"#!/bin/sh\n@REAL@ \"$@\"\n", false},
	"itself":            {"#!/bin/sh\nexec @DIR@/wrapper \"$@\"\n", false},
	"a comment":         {"#!/bin/sh\n# exec @REAL@\n", false},
}

// Scripts are read and never run, and what they start is what is started.
func TestFindFollowsWrappers(t *testing.T) {
	real := installed(t).Path
	for name, c := range wrappers {
		t.Run(name, func(t *testing.T) {
			dir := openDir(t)
			if err := os.Symlink(real, filepath.Join(dir, "chromium")); err != nil {
				t.Fatal(err)
			}
			ran := filepath.Join(dir, "ran")
			script := strings.NewReplacer("@REAL@", real, "@DIR@", dir).Replace(c.script)
			script = strings.Replace(script, "\n", "\ntouch "+ran+"\n", 1)
			write(t, filepath.Join(dir, "wrapper"), script, 0o755)
			bin, err := chromium.Find(t.Context(), filepath.Join(dir, "wrapper"), false)
			if c.found && (err != nil || bin.Path != real) {
				t.Errorf("%+v, %v; want %s", bin, err, real)
			}
			if !c.found && !errors.Is(err, chromium.ErrMissing) {
				t.Errorf("%+v, %v; want browser_missing", bin, err)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the script was run")
			}
		})
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

// openDir is a directory that everybody may search, as those of programs are.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-driver-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A configured path is final, and what is missing is said with what to do about it.
func TestFindRefuses(t *testing.T) {
	dir := openDir(t)
	write(t, filepath.Join(dir, "data"), "text", 0o644)
	write(t, filepath.Join(dir, "text"), "text", 0o755)
	for path, says := range map[string]string{
		filepath.Join(dir, "absent"): "no such file",
		filepath.Join(dir, "data"):   "permission denied",
		filepath.Join(dir, "text"):   "exec format error",
		dir:                          "is a directory",
		"/bin/true":                  "is not a Chromium",
		"/bin/false":                 "does not run",
	} {
		bin, err := chromium.Find(t.Context(), path, true)
		if !errors.Is(err, chromium.ErrMissing) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v; want %q", path, bin, err, says)
		}
	}

	t.Setenv("PATH", dir)
	_, err := chromium.Find(t.Context(), "", false)
	if !errors.Is(err, chromium.ErrMissing) {
		t.Fatal(err)
	}
	for _, want := range []string{"chromium (not on PATH)", "google-chrome (not on PATH)",
		"chromium-headless-shell (not on PATH)",
		"apt-get install chromium", "dnf install chromium", "apk add chromium", "browser.path"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: says nothing of %q", err, want)
		}
	}
}

// The first on PATH that may be used is used, in their order, and the headless
// shell only in a namespace.
func TestFindOrder(t *testing.T) {
	dir := openDir(t)
	t.Setenv("PATH", dir)
	shell := called(t, dir, "chromium-headless-shell")
	if _, err := chromium.Find(t.Context(), "", false); !errors.Is(err, chromium.ErrUnsafe) ||
		!strings.Contains(err.Error(), "namespace") {
		t.Errorf("the shell alone: %v", err)
	}
	if _, err := chromium.Find(t.Context(), shell, false); !errors.Is(err, chromium.ErrUnsafe) {
		t.Errorf("the shell by configuration: %v", err)
	}
	want := chromium.Binary{Path: shell, Product: "Chromium", Version: "149.0.1.2", Major: 149, Shell: true}
	if bin, err := chromium.Find(t.Context(), "", true); err != nil || bin != want {
		t.Errorf("the shell in a namespace: %+v, %v", bin, err)
	}
	chrome := called(t, dir, "google-chrome")
	want = chromium.Binary{Path: chrome, Product: "Google Chrome", Version: "150.0.7000.1", Major: 150}
	for _, namespace := range []bool{false, true} {
		if bin, err := chromium.Find(t.Context(), "", namespace); err != nil || bin != want {
			t.Errorf("Chrome before the shell: %+v, %v", bin, err)
		}
	}
	if err := os.Symlink(called(t, dir, "snap"), filepath.Join(dir, "chromium")); err != nil {
		t.Fatal(err)
	}
	if bin, err := chromium.Find(t.Context(), "", false); err != nil || bin != want {
		t.Errorf("a snap is no browser: %+v, %v", bin, err)
	}
}

// A browser that says nothing does not hold up the host, and is slow rather than
// missing, wherever it was found.
func TestFindDoesNotWait(t *testing.T) {
	mute := called(t, openDir(t), "mute")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if bin, err := chromium.Find(ctx, mute, false); !errors.Is(err, chromium.ErrSlow) ||
		errors.Is(err, chromium.ErrMissing) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%+v, %v", bin, err)
	}
}
