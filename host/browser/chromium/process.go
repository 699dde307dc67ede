package chromium

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// A group is a browser's main process with all processes that it started, in one process group.
type group struct {
	pid    int
	exited chan struct{} // closed when the main process has ended
	reaped chan struct{} // closed when it was waited for; state is set
	silent chan struct{} // closed when all of its output was read
	state  *os.ProcessState
	output *tail

	mu sync.Mutex // held while the pid is released, and while it is used
}

// spawn starts a command as a process group that dies with this process, and waits for it on a
// thread that lives as long, since the kernel ties the parent-death signal to the thread. When the
// main process ends, the rest of the group is killed before its pid is free for reuse. Directories
// in hidden are made reachable for the command.
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
		_ = r.SetReadDeadline(time.Now().Add(strayLimit)) // a pipe takes deadlines; drain may have closed it
	}()
	return g, nil
}

// strayLimit is how long the output of an ended browser is read if a process outside its group
// still holds the other end.
const strayLimit = 2 * time.Second
