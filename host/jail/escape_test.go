//go:build linux

package jail_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/host/jail"
)

// No way leads out of a worker with every layer, for the uid these tests run under.
func TestNoEscape(t *testing.T) {
	need(t, "namespaces", "landlock", "seccomp")
	test := selfTest(t, jail.Walls{})
	if len(test.Attempts) < 15 {
		t.Fatalf("only %d attempts", len(test.Attempts))
	}
	for _, a := range test.Attempts {
		if !a.Blocked || !a.Expected {
			t.Errorf("%s: blocked %v (%s), expected %v", a.Name, a.Blocked, a.By, a.Expected)
		}
	}
	if test.Isolation.Level != jail.LevelFull || len(test.Broken()) > 0 {
		t.Errorf("%+v, broken %v", test.Isolation, test.Broken())
	}
}

func selfTest(t *testing.T, walls jail.Walls) jail.SelfTest {
	t.Helper()
	test, err := launcher(t, jail.Options{Walls: walls}).SelfTest(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range test.Attempts {
		t.Logf("%-20s blocked %-5v expected %-5v %s", a.Name, a.Blocked, a.Expected, a.By)
	}
	return test
}

// Each layer holds without the others: what only it can have blocked is
// blocked, and no reported layer is found broken.
func TestEachLayerAlone(t *testing.T) {
	need(t, "namespaces", "landlock", "seccomp")
	files := []string{"open_passwd", "open_data_directory", "open_host_proc", "create_file", "exec"}
	for _, tc := range []struct {
		name  string
		walls jail.Walls
		shuts []string
	}{
		{"namespaces", jail.Walls{NoUID: true, NoLandlock: true, NoSeccomp: true},
			append([]string{"tcp", "udp", "unix_socket", "ptrace_host", "signal_host"}, files...)},
		{"landlock", jail.Walls{NoUID: true, NoNamespaces: true, NoSeccomp: true},
			append([]string{"tcp", "unix_socket", "mount", "ptrace_host"}, files...)},
		{"seccomp", jail.Walls{NoUID: true, NoNamespaces: true, NoLandlock: true},
			append([]string{"tcp", "udp", "fork", "map_executable", "make_executable", "io_uring", "exec_memory_file", "mount"},
				files...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			test := selfTest(t, tc.walls)
			if broken := test.Broken(); len(broken) > 0 {
				t.Errorf("broken: %v", broken)
			}
			for _, a := range test.Attempts {
				if tc.name == "landlock" && !a.Expected {
					continue // this kernel's Landlock does not know of it yet
				}
				if slices.Contains(tc.shuts, a.Name) && !a.Blocked {
					t.Errorf("%s got through", a.Name)
				}
			}
		})
	}
}

// Without walls the same attempts succeed, so a failure means something.
func TestCanaryFliesWithoutWalls(t *testing.T) {
	test := selfTest(t, jail.Walls{Off: true})
	open := []string{"open_passwd", "open_data_directory", "create_file", "tcp", "udp", "unix_socket",
		"exec", "exec_memory_file",
		"fork", "signal_host", "map_executable", "make_executable", "exceed_memory"}
	for _, a := range test.Attempts {
		if a.Expected {
			t.Errorf("%s: expected to be blocked by nothing", a.Name)
		}
		if slices.Contains(open, a.Name) && a.Blocked {
			t.Errorf("%s blocked without walls: %s", a.Name, a.By)
		}
	}
	if test.Isolation.Level != jail.LevelProcess {
		t.Errorf("level %s without walls", test.Isolation.Level)
	}
}

// An ordinary user gets the same walls through a user namespace.
// It runs the tests above again as a user with no rights.
func TestUnprivileged(t *testing.T) {
	need(t, "namespaces", "landlock", "seccomp")
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: root, to become an ordinary user; the tests it repeats run without privileges already")
	}
	// #nosec G204: the running test binary
	again := exec.Command("/proc/self/exe", "-test.v", "-test.count=1", "-test.run="+
		"^(TestNoEscape|TestEachLayerAlone|TestCanaryFliesWithoutWalls|TestEveryThread|TestDescriptors|TestRoot.*|TestDirectory.*|"+
		"TestCompileWorkerWrites|TestConceal|TestParentDeath|TestSealForbidsMachineCode|TestProbe)$")
	again.Dir = "/"
	again.Env = append(os.Environ(), "HOME=/", "TMPDIR=/tmp", "JAIL_TEST_WORKER="+workerExecutable)
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{}}}
	out, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid 65534: %v\n%s", err, out)
	}
	for _, want := range []string{"--- PASS: TestNoEscape", "--- PASS: TestParentDeath/spin",
		"Namespaces:[user network mount pid ipc uts]"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("as uid 65534: no %q in\n%s", want, out)
		}
	}
}
