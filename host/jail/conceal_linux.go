package jail

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// concealed is what [Conceal] did to this process.
var concealed struct {
	sync.Mutex
	on       bool
	revealed int // starts that need it dumpable just now
}

// Conceal keeps the memory of the calling process, a host, from being written down or
// looked at: no core file is made of it or of what it starts, and other
// processes of its user may neither trace nor read it. A host that is not root is
// traceable for the moment in which it starts a worker in a user namespace: the kernel
// lets nobody write the id maps of a process that shares the memory of an undumpable one.
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

// reveal undoes what [Conceal] did to the process until hide is called.
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
