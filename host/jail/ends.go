package jail

import (
	"errors"
	"fmt"
	"os"
)

// ends are the two sides of a worker's descriptors before it is started.
type ends struct {
	socket, stderr *os.File   // the host's
	workers        []*os.File // the worker's, by number (S11)
	owned          []*os.File // those of workers to close after the start
}

// openEnds opens the null device, the pipe and the socket pair; files follow at 4 and 5.
func openEnds(files []*os.File) (_ *ends, err error) {
	e := &ends{}
	defer func() {
		if err != nil {
			e.closeHosts()
			e.closeWorkers()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	e.owned = append(e.owned, null)
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	e.stderr, e.owned = read, append(e.owned, write)
	host, worker, err := socketPair()
	if err != nil {
		return nil, err
	}
	e.socket, e.owned = host, append(e.owned, worker)
	e.workers = []*os.File{null, null, write, worker, null, null}
	for i, f := range files {
		if f != nil {
			e.workers[ModuleFD+i] = f
		}
	}
	return e, nil
}

func (e *ends) closeWorkers() {
	for _, f := range e.owned {
		_ = f.Close() // the worker has its own
	}
}

func (e *ends) closeHosts() {
	for _, f := range []*os.File{e.socket, e.stderr} {
		if f != nil {
			_ = f.Close() // nothing was sent
		}
	}
}

// ignoreDone makes a signal to a process that has ended a success.
func ignoreDone(err error, verb string) error {
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return fmt.Errorf("%s worker: %w", verb, err)
}
