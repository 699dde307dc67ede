package jail

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const signalViolation = syscall.SIGSYS

// await waits for the end of the worker and reaps it. It reaps with p.mu held, so that whoever holds p.mu while reaped
// is false can rely on the pid.
func (p *Process) await() (*os.ProcessState, error) {
	awaitExit(p.handle)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	return p.handle.Wait()
}

// awaitExit returns when the process has ended and can be reaped without waiting. It parks a goroutine on a pidfd or,
// if there are none, blocks a thread.
func awaitExit(process *os.Process) {
	if fd, err := unix.PidfdOpen(process.Pid, unix.PIDFD_NONBLOCK); err == nil {
		file := os.NewFile(uintptr(fd), "pidfd")
		defer file.Close() // only waited on
		if raw, err := file.SyscallConn(); err == nil && raw.Read(ended) == nil {
			return
		}
	}
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// ended reports whether the process of a pidfd has ended.
func ended(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
}

// processCPU reads the CPU clock of a process that has not been reaped.
func processCPU(pid int) (time.Duration, error) {
	const schedulerClock = 2 // CPUCLOCK_SCHED of a process
	var spec unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &spec); err != nil {
		return 0, fmt.Errorf("read CPU clock of worker: %w", err)
	}
	return time.Duration(spec.Nano()), nil
}

// processMemory reads the resident set, and its maximum, of a process that has not been reaped. Both are 0 for a
// process that is just ending.
func processMemory(pid int) (resident, peak uint64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read memory of worker: %w", err)
	}
	if peak, err = statusBytes(status, "\nVmHWM:"); err == nil {
		resident, err = statusBytes(status, "\nVmRSS:")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read memory of worker: %w", err)
	}
	return resident, peak, nil
}

// statusBytes returns the value on the line that begins with name, 0 if there is none.
func statusBytes(status []byte, name string) (uint64, error) {
	_, after, _ := bytes.Cut(status, []byte(name))
	number, _, _ := bytes.Cut(bytes.TrimSpace(after), []byte(" "))
	if len(number) == 0 {
		return 0, nil
	}
	kib, err := strconv.ParseUint(string(number), 10, 64)
	return kib * 1024, err
}
