package jail

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// concealed is the state of [Conceal] for this process.
var concealed struct {
	sync.Mutex
	on       bool
	revealed int // starts in progress that need it to be dumpable
}

// Conceal protects the memory of the calling process, a host: it and its children write no
// core file, and other processes of its user can neither trace nor read it. A host that is
// not root is traceable while it starts a worker in a user namespace, because the kernel
// does not let the id maps of a process that shares memory with an undumpable one be
// written.
func Conceal() error {
	concealed.Lock()
	defer concealed.Unlock()
	if err := lower(unix.RLIMIT_CORE, 0); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	if err := setDumpable(false); err != nil {
		return err
	}
	concealed.on = true
	return nil
}

// reveal makes the process dumpable again until hide is called.
func reveal() (hide func() error, err error) {
	concealed.Lock()
	defer concealed.Unlock()
	if !concealed.on || os.Geteuid() == 0 {
		return func() error { return nil }, nil
	}
	if err := setDumpable(true); err != nil {
		return nil, err
	}
	concealed.revealed++
	return func() error {
		concealed.Lock()
		defer concealed.Unlock()
		if concealed.revealed--; concealed.revealed > 0 {
			return nil
		}
		return setDumpable(false)
	}, nil
}

func setDumpable(yes bool) error {
	value := uintptr(0)
	if yes {
		value = 1
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, value, 0, 0, 0); err != nil {
		return fmt.Errorf("set dumpable: %w", err)
	}
	return nil
}
