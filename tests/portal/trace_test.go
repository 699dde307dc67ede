package portal

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// traced checks the archive of the owner's one traced run: pictures, and a page that
// shows the steps when it is opened from a disk.
func (o *owner) traced() {
	t := o.t
	t.Helper()
	found, err := filepath.Glob(o.data("traces", "browser-trace-run_*.zip"))
	if err != nil || len(found) != 1 {
		t.Fatalf("archives: %v, %v", found, err)
	}
	dir := unpacked(t, found[0])
	pictures, err := filepath.Glob(filepath.Join(dir, "act_*.jpg"))
	if err != nil || len(pictures) < 5 {
		t.Errorf("%d pictures, %v", len(pictures), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "trace.jsonl"))
	if err != nil || strings.Contains(string(text), password) || strings.Contains(string(text), code) {
		t.Errorf("the archive has what was typed: %v", err)
	}
	page := chromium(t, dir, "--dump-dom")
	for _, want := range []string{"fill", "adjust", "scroll", `alt="The page afterwards"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if path := os.Getenv("SLUICE_PICTURE"); path != "" { // docs/browser-trace.png
		chromium(t, dir, "--window-size=1200,800", "--screenshot="+path)
	}
}

// chromium opens the page of an archive as an owner would.
func chromium(t *testing.T, dir string, args ...string) string {
	t.Helper()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + t.TempDir(),
		"--virtual-time-budget=2000"}, args...)
	out, err := exec.Command("chromium", append(args, "file://"+filepath.Join(dir, "index.html"))...).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(out)
}

func unpacked(t *testing.T, archive string) string {
	t.Helper()
	r, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := t.TempDir()
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		_ = in.Close()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(f.Name)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
