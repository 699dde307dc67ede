//go:build linux

package jail_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/jail"
)

// A spinning guest is gone without its help. How soon is measured by BenchmarkKill.
func TestKilledSpinning(t *testing.T) {
	l := launcher(t, jail.Options{})
	for range 5 {
		killSpinning(t, l)
	}
}

// killSpinning returns how long it took from the kill to the reaped process.
func killSpinning(tb testing.TB, l *jail.Launcher) time.Duration {
	tb.Helper()
	w, _ := run(tb, l, order{Seal: true, Do: "spin"}, nil)
	burn(tb, w, 20*time.Millisecond)
	began := time.Now()
	if err := w.Kill(); err != nil {
		tb.Fatal(err)
	}
	exit := wait(tb, w)
	if exit.Signal != syscall.SIGKILL || exit.Cause(jail.Limits{}) != jail.CauseKilled {
		tb.Errorf("exit %+v", exit)
	}
	return time.Since(began)
}

// BenchmarkKill measures from the kill to the reaped process: an idle machine takes 1 to 2 ms.
func BenchmarkKill(b *testing.B) {
	l := launcher(b, jail.Options{})
	var worst, all time.Duration
	for range b.N {
		took := killSpinning(b, l)
		worst, all = max(worst, took), all+took
	}
	b.ReportMetric(float64(all.Microseconds())/1000/float64(b.N), "kill-ms")
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-kill-ms")
}

// burn returns when the worker has used that much CPU time.
func burn(t testing.TB, w *worker, much time.Duration) time.Duration {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		used, err := w.CPU()
		if err != nil {
			t.Fatal(err)
		}
		if used >= much {
			return used
		}
		if time.Now().After(deadline) {
			t.Fatalf("worker used only %v", used)
		}
	}
}

// Usage is sampled while a worker lives and exact when it has ended.
func TestUsage(t *testing.T) {
	w, _ := run(t, launcher(t, jail.Options{}), order{Seal: true, Do: "spin"}, nil)
	sampled := burn(t, w, 30*time.Millisecond)
	resident, peak, err := w.Memory()
	if err != nil || peak < 1<<20 || resident > peak || resident < 1<<20 {
		t.Errorf("memory %d, peak %d %v", resident, peak, err)
	}
	if err := w.Kill(); err != nil {
		t.Fatal(err)
	}
	exit := wait(t, w)
	if exit.CPU() < sampled-10*time.Millisecond || exit.PeakMemory < peak {
		t.Errorf("sampled %v, %d bytes; at the end %v, %d bytes", sampled, peak, exit.CPU(), exit.PeakMemory)
	}
	if after, err := w.CPU(); err != nil || after != exit.CPU() {
		t.Errorf("CPU after the end: %v %v", after, err)
	}
}

// A worker's peak is its own, however large its host is.
func TestPeakIsNotTheHosts(t *testing.T) {
	large := make([]byte, 96<<20)
	for i := 0; i < len(large); i += 4096 {
		large[i] = 1
	}
	w, _ := run(t, launcher(t, jail.Options{}), order{Seal: true, Do: "spin"}, nil)
	burn(t, w, 10*time.Millisecond)
	if err := w.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, w); exit.PeakMemory < 1<<20 || exit.PeakMemory > uint64(len(large)) {
		t.Errorf("peak %d of a small worker", exit.PeakMemory)
	}
	sink = large
}

// A suspended worker uses no CPU, goes on when resumed, and can be killed.
func TestSuspend(t *testing.T) {
	w, _ := run(t, launcher(t, jail.Options{}), order{Seal: true, Do: "spin"}, nil)
	burn(t, w, 10*time.Millisecond)
	if err := w.Suspend(); err != nil {
		t.Fatal(err)
	}
	stopped := stoppedCPU(t, w)
	if err := w.Resume(); err != nil {
		t.Fatal(err)
	}
	burn(t, w, stopped+20*time.Millisecond)
	if err := w.Suspend(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// stoppedCPU waits for the kernel to call the worker stopped, and checks that its
// clock stands.
func stoppedCPU(t *testing.T, w *worker) time.Duration {
	t.Helper()
	for !allThreads(t, w.PID(), "T (stopped)") {
	}
	first := burn(t, w, 0)
	for range 1000 {
		if now := burn(t, w, 0); now != first {
			t.Fatalf("a stopped worker went from %v to %v", first, now)
		}
	}
	return first
}

// allThreads reports whether all threads of a process are in a state.
func allThreads(tb testing.TB, pid int, state string) bool {
	tb.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) == 0 {
		tb.Fatalf("threads of %d: %v %v", pid, tasks, err)
	}
	for _, task := range tasks {
		if status(tb, task, map[string]string{"State": state})["State"] != state {
			return false
		}
	}
	return true
}

// At its memory wall a worker ends, and the end says why.
func TestMemoryWall(t *testing.T) {
	limits := jail.RunLimits(64<<20, 0, time.Minute)
	w, _ := run(t, launcher(t, jail.Options{}), order{Config: jail.Config{Limits: limits}, Seal: true, Do: "hog"}, nil)
	exit := wait(t, w)
	if cause := exit.Cause(limits); cause != jail.CauseMemory {
		t.Errorf("cause %s, %+v", cause, exit)
	}
	if exit.PeakMemory > limits.DataBytes {
		t.Errorf("peak %d beyond the wall at %d", exit.PeakMemory, limits.DataBytes)
	}
}

// At its CPU limit a worker ends, and the end says why.
func TestCPUWall(t *testing.T) {
	limits := jail.RunLimits(64<<20, 0, time.Minute)
	limits.CPU = time.Second
	w, _ := run(t, launcher(t, jail.Options{}), order{Config: jail.Config{Limits: limits}, Seal: true, Do: "spin"}, nil)
	exit := wait(t, w)
	if cause := exit.Cause(limits); cause != jail.CauseCPU {
		t.Errorf("cause %s, %+v", cause, exit)
	}
}

// The host keeps the end of a worker's diagnostics.
func TestStderrTail(t *testing.T) {
	w := start(t, launcher(t, jail.Options{}))
	if err := jail.SendFDs(w.Socket, []byte(strings.Repeat("x", 100))); err != nil {
		t.Fatal(err)
	}
	exit := wait(t, w)
	if exit.Code != 3 || !strings.Contains(string(exit.Stderr), "invalid character 'x'") {
		t.Errorf("exit %+v %q", exit, exit.Stderr)
	}
	if exit.Cause(jail.Limits{}) != jail.CauseCrashed {
		t.Errorf("cause %s", exit.Cause(jail.Limits{}))
	}
}

// When the host dies the worker is gone within a second, wherever it is: a
// blank one that waits, and one that spins after it changed its uid.
func TestParentDeath(t *testing.T) {
	for _, mode := range []string{"blank", "spin"} {
		t.Run(mode, func(t *testing.T) {
			host := exec.Command("/proc/self/exe", "-test.run=^TestHostThatDies$")
			host.Env = append(os.Environ(), "JAIL_TEST_HOST="+mode, "JAIL_TEST_WORKER="+workerExecutable)
			out, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Fscanf(out, "worker %d\n", &pid); err != nil {
				t.Fatal(err)
			}
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := host.Wait(); err == nil {
				t.Error("host ended by itself")
			}
			for alive(t, pid) { // a worker that outlives its host fails by the time limit of all tests
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// alive reports whether a process exists that is not just waiting to be reaped.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(string(stat), ") Z ") && !strings.Contains(string(stat), ") X ")
}

// TestHostThatDies is the host of TestParentDeath, in a process of its own.
func TestHostThatDies(t *testing.T) {
	mode := os.Getenv("JAIL_TEST_HOST")
	if mode == "" {
		return // nothing to prove here: TestParentDeath starts it
	}
	w := start(t, launcher(t, jail.Options{}))
	if mode == "spin" {
		w.send(t, order{Seal: true, Do: "spin"}, nil)
		w.reply(t)
	}
	fmt.Printf("worker %d\n", w.PID())
	select {}
}
