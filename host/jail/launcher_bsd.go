//go:build darwin || freebsd || netbsd || openbsd

package jail

import (
	"fmt"
	"os"
	"syscall"
)

// namespaceSet: there are no namespaces here.
type namespaceSet struct{}

func (namespaceSet) names() []string { return []string{} }

func ownUIDs(first, last, gid int) bool { return false }

func (l *Launcher) negotiate() (namespaceSet, error) { return namespaceSet{}, nil }

// executable is a program by its path; a version on disk that changed is found
// out by the build id of the worker's first message (S10).
type executable struct{ path string }

func openExecutable(path string) (*executable, error) {
	if path != "" {
		return &executable{path: path}, nil
	}
	path, err := os.Executable()
	return &executable{path: path}, err
}

func (e *executable) close() error { return nil }

func (e *executable) start(args, env []string, files []*os.File, _ namespaceSet) (*os.Process, error) {
	process, err := os.StartProcess(e.path, append([]string{"sluice"}, args...),
		&os.ProcAttr{Env: env, Files: files, Dir: "/", Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", e.path, err)
	}
	return process, nil
}

// yieldPriority does nothing here: a priority belongs to the whole process.
func yieldPriority() {}
