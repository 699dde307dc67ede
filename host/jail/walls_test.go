//go:build linux

package jail_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sluicehost/sluice/host/jail"
)

// codeDir is a directory as the host keeps compiled code in.
func codeDir(t *testing.T, l *jail.Launcher) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "code")
	if err := os.Mkdir(path, 0o750); err != nil {
		t.Fatal(err)
	}
	entry := filepath.Join(path, "entry")
	if err := os.WriteFile(entry, []byte("machine code"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, entry} {
		if err := os.Chown(p, -1, max(l.GID(), -1)); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, path)
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// A worker has the descriptors 0 to 5, and of its runtime's own at most a
// poller and an event counter; descriptors of the host do not pass, not even
// ones that forgot close-on-exec.
func TestDescriptors(t *testing.T) {
	leak, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	l := launcher(t, jail.Options{})
	w, r := run(t, l, order{Do: "list descriptors"}, codeDir(t, l))
	got := w.reply(t).Result
	want := []string{"0 close-on-exec=0", "1 close-on-exec=0", "2 close-on-exec=0", "3 close-on-exec=0",
		"4 close-on-exec=1", "5 close-on-exec=1"}
	runtimes := min(2, max(0, len(got)-len(want)))
	if d := cmp.Diff(want, got[:len(got)-runtimes]); d != "" {
		t.Errorf("descriptors (-want +got):\n%s", d)
	}
	if os.Geteuid() != 0 {
		return // an undumpable process hides what its descriptors are
	}
	t.Logf("at arrival %q", r.Arrived.FDs)
	for _, name := range links(t, w.PID()) {
		switch {
		case name == "/dev/null", strings.HasPrefix(name, "pipe:"), strings.HasPrefix(name, "socket:"),
			strings.HasPrefix(name, "/memfd:module"), strings.HasPrefix(name, "/code"),
			name == "anon_inode:[eventpoll]", name == "anon_inode:[eventfd]":
		default:
			t.Errorf("descriptor on %q", name)
		}
	}
}

func links(t *testing.T, pid int) []string {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("descriptors of %d: %v %v", pid, fds, err)
	}
	var names []string
	for _, fd := range fds {
		name, err := os.Readlink(fd)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// No_new_privs, both filters and the identity hold for every thread.
func TestEveryThread(t *testing.T) {
	need(t, "namespaces", "landlock", "seccomp")
	w, r := run(t, launcher(t, jail.Options{}), order{Seal: true, Do: "live"}, nil)
	if got := w.reply(t).Result; !cmp.Equal(got, []string{"alive"}) {
		t.Fatalf("runtime: %q", got)
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", w.PID()))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads: %v %v", tasks, err)
	}
	want := map[string]string{
		"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "2",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
	}
	if id := w.Identity(); id.UID >= 0 {
		want["Uid"] = strings.Join(slices.Repeat([]string{fmt.Sprint(id.UID)}, 4), "\t")
		want["Gid"] = strings.Join(slices.Repeat([]string{fmt.Sprint(id.GID)}, 4), "\t")
		want["Groups"] = ""
	}
	for _, task := range tasks {
		if d := cmp.Diff(want, status(t, task, want)); d != "" {
			t.Errorf("%s (-want +got):\n%s", task, d)
		}
	}
	t.Logf("%d threads, %+v", len(tasks), r.Isolation)
}

// A worker of root begins with what it needs to enter the jail: it can regain no other capability, and has no bounding
// set to empty.
func TestBoundFromTheStart(t *testing.T) {
	w := start(t, launcher(t, jail.Options{}))
	if os.Geteuid() != 0 || slices.Contains(w.Identity().Namespaces, jail.NamespaceUser) {
		t.Skip("SKIPPED: a worker in a user namespace begins with every capability in it")
	}
	got := status(t, fmt.Sprintf("/proc/%d/status", w.PID()), map[string]string{"CapPrm": "", "CapBnd": ""})
	const entering = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH |
		1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_CHROOT
	permitted, err := strconv.ParseUint(got["CapPrm"], 16, 64)
	if bounding := strings.Trim(got["CapBnd"], "0"); err != nil || permitted&^entering != 0 || bounding != "" {
		t.Errorf("%v, %v", got, err)
	}
}

// A worker yields to its host, is the first to go when memory is short, and can
// make no thread, whatever uid it has.
func TestWorkerStandsBehindItsHost(t *testing.T) {
	need(t, "namespaces", "seccomp")
	for name, walls := range map[string]jail.Walls{"every wall": {}, "a shared uid": {NoUID: true},
		"no namespaces": {NoUID: true, NoNamespaces: true}} {
		t.Run(name, func(t *testing.T) {
			w, _ := run(t, launcher(t, jail.Options{Walls: walls}), order{Seal: true}, nil)
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.PID()))
			if err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(string(stat), ") ")
			if nice := strings.Fields(after)[16]; nice != "1" {
				t.Errorf("priority %s, want 1", nice)
			}
			score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", w.PID()))
			if err != nil || strings.TrimSpace(string(score)) != "1000" {
				t.Errorf("oom_score_adj %s %v, want 1000", score, err)
			}
			limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", w.PID()))
			if err != nil || !slices.Contains(fieldsOf(string(limits), "Max processes"), "0") {
				t.Errorf("limits %v:\n%s", err, limits)
			}
		})
	}
}

// fieldsOf are the words of the line that begins so.
func fieldsOf(text, begins string) []string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, begins); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// status reads the wanted fields of a /proc status file.
func status(t testing.TB, path string, want map[string]string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if _, ok := want[name]; ok {
			got[name] = strings.TrimSpace(value)
		}
	}
	return got
}

// The root has one entry, the compiled code, and it can be read there.
func TestRootHoldsOnlyCode(t *testing.T) {
	need(t, "namespaces")
	l := launcher(t, jail.Options{})
	w, r := run(t, l, order{Do: "list directory"}, codeDir(t, l))
	want := []string{"/code", "/code/entry", `entry: "machine code" <nil>`}
	got := w.reply(t).Result
	if !slices.Contains(r.Isolation.Namespaces, jail.NamespaceMount) {
		t.Fatalf("no mount namespace: %+v", r.Isolation)
	}
	// Landlock lets the worker list its directory and not even the root above it.
	if r.Isolation.Landlock > 0 {
		want[0] = "/: open /: permission denied"
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("view (-want +got):\n%s", d)
	}
}

// Without Landlock, the root itself shows that nothing else is in it.
func TestRootWithoutLandlock(t *testing.T) {
	need(t, "namespaces")
	l := launcher(t, jail.Options{Walls: jail.Walls{NoLandlock: true}})
	w, _ := run(t, l, order{Do: "list directory"}, codeDir(t, l))
	want := []string{"/code", "/code/entry", `entry: "machine code" <nil>`}
	if d := cmp.Diff(want, w.reply(t).Result); d != "" {
		t.Errorf("view (-want +got):\n%s", d)
	}
}

// Without namespaces, Landlock alone lets the worker read its directory.
func TestDirectoryWithoutNamespaces(t *testing.T) {
	need(t, "landlock")
	l := launcher(t, jail.Options{Walls: jail.Walls{NoNamespaces: true}})
	w, r := run(t, l, order{Do: "list directory"}, codeDir(t, l))
	want := []string{"/: open /: permission denied", r.Dir + "/entry", `entry: "machine code" <nil>`}
	if d := cmp.Diff(want, w.reply(t).Result); d != "" {
		t.Errorf("view (-want +got):\n%s", d)
	}
}

// The directory's descriptor does not lead out of the new root, by the
// mount namespace alone.
func TestDirectoryDoesNotLeadOut(t *testing.T) {
	need(t, "namespaces")
	l := launcher(t, jail.Options{Walls: jail.Walls{NoLandlock: true, NoUID: true}})
	w, _ := run(t, l, order{Do: "climb"}, codeDir(t, l))
	if got := w.reply(t).Result; len(got) > 0 {
		t.Errorf("climbing from the directory %s", got)
	}
}

// A compile worker writes its entry into its own directory.
func TestCompileWorkerWrites(t *testing.T) {
	l := launcher(t, jail.Options{})
	path := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := open(t, path)
	w := start(t, l)
	engine := filepath.Join(path, "engine") // which a worker makes before it enters
	if err := os.Mkdir(engine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Own(dir), w.Own(open(t, engine))); err != nil {
		t.Fatal(err)
	}
	w.send(t, order{Config: jail.Config{Limits: jail.CompileLimits(1 << 20), Writable: true}, Do: "write entry"}, dir)
	if r := w.reply(t); r.Error != "" || !r.Isolation.Meets(jail.LevelPartial) {
		t.Fatalf("worker: %+v", r)
	}
	if got := w.reply(t).Result; len(got) > 0 {
		t.Fatalf("write: %s", got)
	}
	info, err := os.Stat(filepath.Join(path, "engine", "entry"))
	if err != nil || info.Size() != 4096 {
		t.Errorf("entry: %v %v", info, err)
	}
}

// A worker that was handed code may not write there.
func TestRunWorkerDoesNotWrite(t *testing.T) {
	l := launcher(t, jail.Options{Walls: jail.Walls{NoSeccomp: true, NoUID: true}})
	w, _ := run(t, l, order{Do: "write entry"}, codeDir(t, l))
	if got := w.reply(t).Result; len(got) != 1 {
		t.Errorf("write into compiled code succeeded: %q", got)
	}
}

// Code is written and then protected, and after Seal not even that.
func TestSealForbidsMachineCode(t *testing.T) {
	need(t, "seccomp")
	l := launcher(t, jail.Options{})
	w, _ := run(t, l, order{Do: "protect executable"}, nil)
	if got := w.reply(t).Result; !cmp.Equal(got, []string{"<nil>"}) {
		t.Fatalf("before seal: %q", got)
	}
	for _, o := range []order{{Do: "map executable"}, {Do: "map executable", Seal: true},
		{Do: "protect executable", Seal: true}} {
		w, _ := run(t, l, o, nil)
		exit := wait(t, w)
		if cause := exit.Cause(jail.Limits{}); cause != jail.CauseViolation {
			t.Errorf("%s, sealed %v: %s, %+v", o.Do, o.Seal, cause, exit)
		}
	}
}

// wait waits for a worker that is to end by itself.
func wait(t testing.TB, w *worker) jail.Exit {
	t.Helper()
	select {
	case <-w.Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("worker does not end")
	}
	exit, err := w.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

// A promise that cannot be kept ends the worker before it reads anything.
func TestBrokenPromise(t *testing.T) {
	l := launcher(t, jail.Options{Walls: jail.Walls{NoLandlock: true}})
	w := start(t, l)
	promised := jail.Isolation{Level: jail.LevelFull, Landlock: 1, Seccomp: jail.SeccompStrict, Rlimits: true}
	w.send(t, order{Config: jail.Config{Promised: &promised}}, nil)
	r := w.reply(t)
	if !strings.Contains(r.Error, jail.ErrPromise.Error()) || !strings.Contains(r.Error, "landlock") {
		t.Errorf("error %q", r.Error)
	}
}

// Limits that limit nothing are refused.
func TestLimitsAreRequired(t *testing.T) {
	w := start(t, launcher(t, jail.Options{}))
	w.send(t, order{Config: jail.Config{Limits: jail.Limits{DataBytes: 1 << 30}}}, nil)
	if r := w.reply(t); !strings.Contains(r.Error, jail.ErrLimits.Error()) {
		t.Errorf("error %q", r.Error)
	}
}
