//go:build linux

package jail_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sluicehost/sluice/host/jail"
)

// workerMain is the worker of these tests: it takes one order, enters, reports,
// acts, reports again and waits for the host to hang up.
func workerMain(args []string) int {
	here := arrival{Args: args, Env: os.Environ(), FDs: openDescriptors()}
	jail.Prepare()
	socket := os.NewFile(jail.SocketFD, "host")
	var o order
	if err := receive(socket, &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	out := json.NewEncoder(socket)
	r := report{Arrived: here}
	in, err := enter(o, &r)
	if err != nil {
		r.Error = err.Error()
	}
	if err := out.Encode(r); err != nil || in == nil {
		return 4
	}
	if o.Do != "" {
		r.Result = actions[o.Do](in)
		if err := out.Encode(r); err != nil {
			return 5
		}
	}
	_, _ = socket.Read(make([]byte, 1))
	return 0
}

func receive(socket *os.File, o *order) error {
	line := make([]byte, 64<<10)
	n, files, err := jail.ReceiveFDs(socket, line)
	if err != nil {
		return err
	}
	for i, f := range files {
		if err := jail.Place(f, jail.ModuleFD+i); err != nil {
			return err
		}
	}
	return json.Unmarshal(line[:n], o)
}

func enter(o order, r *report) (*jail.Inside, error) {
	dir := jail.NoDir
	if o.Dir {
		dir = jail.DirFD
	}
	in, err := jail.Enter(o.Config, dir)
	if err != nil {
		return nil, err
	}
	r.Isolation, r.Dir = in.Isolation(), in.Dir
	if o.Seal {
		r.Isolation, err = in.Seal()
	}
	return in, err
}

// actions are done behind the walls.
var actions = map[string]func(*jail.Inside) []string{
	"list descriptors": func(*jail.Inside) []string { return openDescriptors() },
	"list directory":   listDirectory,
	"climb":            climb,
	"write entry":      writeEntry,
	"spin":             func(*jail.Inside) []string { spin(); return nil },
	"hide memory":      func(*jail.Inside) []string { hideMemory(); return nil },
	"hog":              func(*jail.Inside) []string { return hog() },
	"map executable":   func(*jail.Inside) []string { return mapExecutable() },
	"protect executable": func(*jail.Inside) []string {
		return protectExecutable()
	},
	"live": func(*jail.Inside) []string { return live() },
}

// openDescriptors names the kinds of all low descriptors without looking anywhere
// but at the descriptors, so that it works behind every wall.
func openDescriptors() []string {
	var found []string
	for fd := range 64 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil {
			continue
		}
		found = append(found, fmt.Sprintf("%d close-on-exec=%d", fd, flags))
	}
	return found
}

func listDirectory(in *jail.Inside) []string {
	var out []string
	for _, place := range []string{"/", in.Dir} {
		entries, err := os.ReadDir(place)
		if err != nil {
			out = append(out, place+": "+err.Error())
			continue
		}
		for _, e := range entries {
			out = append(out, filepath.Join(place, e.Name()))
		}
	}
	data, err := os.ReadFile(filepath.Join(in.Dir, "entry"))
	return append(out, fmt.Sprintf("entry: %q %v", data, err))
}

// climb tries to leave through the directory's own descriptor.
func climb(*jail.Inside) []string {
	fd, err := unix.Openat(jail.DirFD, strings.Repeat("../", 12)+"etc", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err == nil {
		return []string{fmt.Sprint("reached ", fd)}
	}
	var s unix.Stat_t
	err = unix.Fstatat(jail.DirFD, strings.Repeat("../", 12)+"etc/passwd", &s, 0)
	if err == nil {
		return []string{"saw /etc/passwd"}
	}
	return nil
}

// writeEntry does what a compile worker's engine does with its cache.
func writeEntry(in *jail.Inside) []string {
	err := func() error {
		sub := filepath.Join(in.Dir, "engine")
		f, err := os.CreateTemp(sub, "entry.*.tmp")
		if err != nil {
			return err
		}
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		return os.Rename(f.Name(), filepath.Join(sub, "entry"))
	}()
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

func spin() {
	for n := 0; ; n++ {
		sink = n
	}
}

var sink any

// hog takes memory until there is none.
func hog() []string {
	var kept [][]byte
	for {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		kept = append(kept, block)
		sink = kept
	}
}

// hideMemory writes memory and takes it out of the limit that counts what may be written.
func hideMemory() {
	for {
		block, err := unix.Mmap(-1, 0, 8<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return
		}
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		if unix.Mprotect(block, unix.PROT_READ) != nil {
			return
		}
	}
}

func mapExecutable() []string {
	_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
	return []string{fmt.Sprint(err)}
}

func protectExecutable() []string {
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return []string{"no page: " + err.Error()}
	}
	return []string{fmt.Sprint(unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC))}
}

// live makes the runtime do everything it may have to while a guest runs:
// threads, collections, growth, timers, preemption.
func live() []string {
	var wg sync.WaitGroup
	for range 4 { // as many as wait in the kernel at a time, see spareThreads
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // a thread that ends is not replaced
			for range 20 {
				sink = make([]byte, 1<<20)
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	runtime.GC()
	return []string{"alive"}
}
