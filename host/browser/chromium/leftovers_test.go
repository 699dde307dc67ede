//go:build unix

package chromium_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// asHost makes this test binary a host that starts one browser, says so, and waits.
const asHost = "SLUICE_TEST_HOST"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == insideArg {
		insideProcess()
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fake(filepath.Base(os.Args[0]))
	}
	if dir := os.Getenv(asHost); dir != "" {
		host(dir)
	}
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

func host(dir string) {
	bin, err := chromium.Find(context.Background(), os.Getenv("SLUICE_CHROMIUM"), false)
	o := chromium.Options{Binary: bin, Profile: filepath.Join(dir, "profile"), Home: filepath.Join(dir, "home"),
		Proxy: "http://127.0.0.1:9"}
	o.UID, _ = strconv.Atoi(os.Getenv(asHost + "_UID"))
	o.GID = o.UID
	if err == nil {
		_, err = chromium.Start(context.Background(), o)
	}
	fmt.Println("started", err)
	select {}
}

// A host that is killed takes its browser with it, and the next one finds and ends
// what was left.
func TestHostsEnd(t *testing.T) {
	o := options(t)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), asHost+"="+filepath.Dir(o.Profile), fmt.Sprintf("%s_UID=%d", asHost, o.UID))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "started <nil>\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if len(owned(o)) == 0 {
		t.Fatal("there is no browser")
	}
	if ended, left := chromium.Leftovers(filepath.Dir(o.Profile) + "-other"); ended+left != 0 {
		t.Errorf("of another host: ended %d, left %d", ended, left)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	main := func() bool {
		for _, l := range running(o) {
			if strings.Contains(l, "--enable-automation --password-store") || strings.Contains(l, "--remote-debugging-pipe") {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(2 * time.Minute); main() && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if main() {
		t.Error("the browser outlived its host")
	}
	if _, left := chromium.Leftovers(filepath.Dir(o.Profile)); left != 0 {
		t.Errorf("%d withstood", left)
	}
	for end := time.Now().Add(2 * time.Minute); len(owned(o)) > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	} // what died with its host may still be on its way
	if left := owned(o); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// Only what names a profile below the root is ended, whoever's child it is by now.
func TestLeftoversSparesOthers(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct {
		arg    string
		orphan bool
		ended  int
	}{
		{"--user-data-dir=" + root + "/profiles/a", true, 1},
		{"--user-data-dir=" + root + "/profiles/a", false, 1}, // an orphan in a container whose first process this is
		{"--user-data-dir=" + root + "-2/profiles/a", true, 0},
		{"--config=" + root + "/profiles/a", true, 0},
		{root + "/profiles/a", true, 0},
	} {
		pid, end := sleeper(t, c.arg, c.orphan)
		ended, left := chromium.Leftovers(root)
		if ended != c.ended || left != 0 {
			t.Errorf("%s, orphan %v: ended %d, left %d, want %d", c.arg, c.orphan, ended, left, c.ended)
		}
		if alive := syscall.Kill(pid, 0) == nil && !zombie(pid); alive != (c.ended == 0) {
			t.Errorf("%s, orphan %v: alive %v", c.arg, c.orphan, alive)
		}
		end()
	}
}

func zombie(pid int) bool {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return strings.Contains(string(status), "State:\tZ")
}

// sleeper is a process with an argument; an orphan is no child of anybody here.
func sleeper(t *testing.T, arg string, orphan bool) (pid int, end func()) {
	t.Helper()
	const wait = `echo $$; exec /bin/sh -c 'read x <&3' sh "$0"`
	cmd := exec.Command("/bin/sh", "-c", wait, arg)
	if orphan {
		cmd = exec.Command("/bin/sh", "-c", `/bin/sh -c "$1" "$0" & exit`, arg, wait)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{r}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if orphan {
		_ = cmd.Wait()
	}
	return pid, func() {
		_ = w.Close() // which ends it, if nothing has
		if !orphan {
			_ = cmd.Wait()
		}
	}
}
