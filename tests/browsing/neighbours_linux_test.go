package browsing_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// intrude prints what a process can get at of the processes $2… and of the directories
// in $1, one a line.
const intrude = `for d in $1; do
  ls "$d" >/dev/null 2>&1 && echo "lists $d"
  ( : >"$d/planted" ) && echo "writes $d"
done 2>/dev/null
shift
for p in "$@"; do
  for f in environ mem maps auxv io stack syscall pagemap; do head -c1 "/proc/$p/$f" >/dev/null 2>&1 && echo "reads $f of $p"; done
  for l in exe cwd root; do readlink "/proc/$p/$l" >/dev/null 2>&1 && echo "follows $l of $p"; done
  ls "/proc/$p/fd" >/dev/null 2>&1 && echo "lists fd of $p"
  for n in 0 1 2 3 4 5 6; do ( : >"/proc/$p/fd/$n" ) 2>/dev/null && echo "opens $n of $p"; done
  kill -0 "$p" 2>/dev/null && echo "signals $p"
done
exit 0`

// intruder runs that script as a user.
func intruder(t *testing.T, uid uint32, dirs []string, pids ...int) string {
	t.Helper()
	args := []string{"-c", intrude, "sh", strings.Join(dirs, " ")}
	for _, p := range pids {
		args = append(args, strconv.Itoa(p))
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// mainProcess is the browser that has its profile below a directory.
func mainProcess(t *testing.T, below string) (pid int, uid uint32) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		line, _ := os.ReadFile(path) // some are gone by now
		fi, err := os.Stat(filepath.Dir(path))
		if err != nil || !bytes.Contains(line, []byte("--user-data-dir="+below)) || bytes.Contains(line, []byte("--type=")) {
			continue
		}
		pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
		return pid, fi.Sys().(*syscall.Stat_t).Uid
	}
	t.Fatalf("no browser has its profile below %s", below)
	return 0, 0
}

// A browser that was taken over runs as another user than the host and than the
// browsers of other connections: their memory, environment, pipes and files are out of
// its reach.
func TestNeighbours(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only browsers of a root host have uids of their own")
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<!doctype html>x")
	}))
	defer site.Close()
	data := browsing.Dir(t)
	h := browsing.Host(t, browser.Options{Data: data, MaxSurfaces: 2})
	var pids []int
	var uids []uint32
	for _, name := range []string{"one", "two"} {
		s := browsing.Begin(t, h, browser.SessionOptions{Connection: name, Name: name, Connector: "test"}, site.URL)
		s.Must(browsing.M{"verb": "open", "url": site.URL, "persistent": true})
		pid, uid := mainProcess(t, filepath.Join(data, "profiles", name))
		pids, uids = append(pids, pid), append(uids, uid)
	}
	if uids[0] == uids[1] || uids[0] == 0 {
		t.Fatalf("uids %v", uids)
	}
	own := filepath.Join(data, "profiles", "one", "one")
	if got := intruder(t, uids[0], []string{own}, pids[0]); !strings.Contains(got, "lists "+own) ||
		!strings.Contains(got, "signals") {
		t.Fatalf("the intruder reaches nothing of its own: %q", got) // so it would find nothing elsewhere
	}
	var dirs []string
	for _, d := range []string{"", "profiles", "profiles/two", "profiles/two/two", "profiles/two/two/Default"} {
		dirs = append(dirs, filepath.Join(data, d))
	}
	if got := intruder(t, uids[0], dirs, pids[1], os.Getpid(), os.Getppid()); got != "" {
		t.Errorf("one browser's user reaches\n%s", got)
	}
}
