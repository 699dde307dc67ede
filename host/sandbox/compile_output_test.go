package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a compile worker leaves is one file. However much it left, few names are read.
func TestOnlyFile(t *testing.T) {
	const sound = "wazero-1/abc"
	for name, c := range map[string]struct {
		files []string
		err   string
	}{
		"sound":  {[]string{sound}, ""},
		"none":   {nil, "no file"},
		"two":    {[]string{sound, "wazero-1/abd"}, "more than one file"},
		"many":   {manyNames(5000), "4 names or more"},
		"nested": {[]string{strings.Repeat("d/", 900) + "x"}, "4 names or more"},
		"link":   {[]string{"-> /etc/passwd"}, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			populate(t, dir, c.files)
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			found, err := onlyFile(root)
			if c.err == "" && (err != nil || found != sound) ||
				c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%q, %v", found, err)
			}
		})
	}
}

// A compile worker that writes more than one file within its bound is ended while it works.
func TestGuard(t *testing.T) {
	for name, files := range map[string][]string{"names": manyNames(50), "bytes": {"wazero-1/abc"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, end := limitOutput(t.Context(), dir, -mostOutput<<12)
			defer end()
			populate(t, dir, files)
			<-ctx.Done()
			f, ok := errors.AsType[*Failure](compileFailure(ctx, context.Cause(ctx)))
			if !ok || f.Code != CodeCompileFailed || !strings.Contains(f.Detail, "compiler writes something else") {
				t.Errorf("%v", context.Cause(ctx))
			}
		})
	}
	sound := t.TempDir()
	populate(t, sound, []string{"wazero-1/abc"})
	if err := errTooMuch(sound, 1); err != nil {
		t.Error(err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := (contextReader{over, strings.NewReader("code")}).Read(make([]byte, 4)); !errors.Is(err,
		context.Canceled) {
		t.Errorf("acceptance goes on after its time: %v", err)
	}
}

func manyNames(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("wazero-1/", i))
	}
	return names
}

func populate(t *testing.T, dir string, files []string) {
	t.Helper()
	for _, name := range files {
		var err error
		if target, link := strings.CutPrefix(name, "-> "); link {
			err = os.Symlink(target, filepath.Join(dir, "link"))
		} else {
			path := filepath.Join(dir, name)
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
