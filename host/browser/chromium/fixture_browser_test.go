package chromium_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// uids are those of the browsers of this test, one each.
var uids atomic.Int32

func init() { uids.Store(int32(206000 + os.Getpid()%3000)) }

// installed is the browser of this machine.
func installed(t testing.TB) chromium.Binary {
	t.Helper()
	bin, err := chromium.Find(t.Context(), os.Getenv("SLUICE_CHROMIUM"), false)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// options are those of a browser with a profile of its own, and no network.
func options(t testing.TB) chromium.Options {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-driver-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := chromium.Options{Binary: installed(t), Profile: filepath.Join(dir, "profile"), Home: filepath.Join(dir, "home"),
		Proxy: "http://127.0.0.1:9"}
	if os.Geteuid() == 0 {
		o.UID = int(uids.Add(1))
		o.GID = o.UID
	}
	for _, err := range []error{os.Chmod(dir, 0o711), os.Mkdir(o.Profile, 0o700), os.Mkdir(o.Home, 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// started is a browser with these options, which is closed with the test.
func started(t testing.TB, o chromium.Options) *chromium.Browser {
	t.Helper()
	b, err := chromium.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := b.Undecodable(); n > 0 {
			t.Errorf("%d events could not be decoded", n)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left := owned(o); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	})
	return b
}

// owned are the command lines of the processes of a browser, by its uid or profile.
func owned(o chromium.Options) (lines []string) {
	for pid, line := range running(o) {
		lines = append(lines, fmt.Sprint(pid, " ", line))
	}
	return lines
}

func running(o chromium.Options) map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		status, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		text := strings.ReplaceAll(string(line), "\x00", " ")
		if strings.Contains(string(status), "\nState:\tZ") &&
			!strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			continue // the first process of this machine waits for it
		}
		mine := o.UID != 0 && strings.Contains(string(status), fmt.Sprintf("\nUid:\t%d\t", o.UID))
		if mine || strings.Contains(text, "--user-data-dir="+o.Profile) {
			found[pid] = text
		}
	}
	return found
}

// renderers are the pids of a browser's renderers.
func renderers(o chromium.Options) (pids []int) {
	for pid, line := range running(o) {
		if strings.Contains(line, "--type=renderer") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// site serves pages by path, whatever the host, as the browser's proxy.
func site(t testing.TB, pages map[string]string) (proxy string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func load(t testing.TB, b *chromium.Browser, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.Load(ctx, url); err != nil {
		t.Fatal(err)
	}
}

func eval(t testing.TB, b *chromium.Browser, expression string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := b.Eval(ctx, expression)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// until waits for something that comes about, woken by the browser's health.
func until(t testing.TB, b *chromium.Browser, what string, so func() bool) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-b.Health():
		case <-look.C:
		case <-limit:
			t.Fatalf("never: %s", what)
		}
	}
}
