package chromium

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// A group is a browser's main process and whatever it started, in one process group.
type group struct {
	pid    int
	exited chan struct{} // the main process has ended
	reaped chan struct{} // and was waited for; state is set
	silent chan struct{} // and all that it printed is in output
	state  *os.ProcessState
	output *tail

	mu sync.Mutex // held while the number is given up, and while it is used
}

// spawn starts a command as a group of its own that dies with this process, and
// waits for it on a thread that lives as long: the kernel binds the parent-death
// signal to the thread. When the main process ends, the others of the group are
// killed before its number is free for somebody else. What is hidden from the command is
// brought to where it can reach it.
func spawn(cmd *exec.Cmd, hidden map[string][]string) (*group, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	g := &group{exited: make(chan struct{}), reaped: make(chan struct{}), silent: make(chan struct{}), output: new(tail)}
	cmd.Stdout, cmd.Stderr = w, w
	started := make(chan error)
	go g.live(cmd, hidden, started)
	err = <-started
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	go func() {
		g.output.drain(r)
		close(g.silent)
	}()
	go func() {
		<-g.reaped
		_ = r.SetReadDeadline(time.Now().Add(strayLimit)) // a pipe takes deadlines, and drain may have closed it
	}()
	return g, nil
}

// strayLimit is how long the output of a browser that has ended is read on, where
// something outside of its group still holds the other end.
const strayLimit = 2 * time.Second
