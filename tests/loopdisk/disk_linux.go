package loopdisk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inside is set in the process that may mount.
const inside = "SLUICE_LOOPDISK"

// Inside runs the test again in a mount namespace of its own, so that no mount
// outlives it, and reports whether this is that process. The test is skipped
// where the machine does not allow it, with what is missing.
func Inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: a disk of our own needs root")
	}
	if _, err := mkfs(); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("SKIPPED: a mount namespace: %v", err)
	}
	t.Logf("%s", out)
	if _, what, skipped := strings.Cut(string(out), "SKIPPED: "); skipped {
		what, _, _ = strings.Cut(what, "\n")
		t.Skip("SKIPPED: " + what)
	}
	if err != nil {
		t.Fatalf("on a disk of its own: %v", err)
	}
	return false
}

func mkfs() (string, error) {
	path, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/mkfs.ext4")
	}
	if err != nil {
		return "", errors.New("mkfs.ext4 is not installed")
	}
	return path, nil
}

// A Disk is mounted on Dir.
type Disk struct {
	Dir   string
	t     *testing.T
	image string
	gen   int // images so far
}

// size is that of a sparse file: it takes only the space that is written.
const size = 2 << 30

// New makes an empty disk and mounts it. It skips the test where there are no loop
// devices.
func New(t *testing.T) *Disk {
	t.Helper()
	tmp := shelf(t)
	d := &Disk{t: t, Dir: filepath.Join(tmp, "disk"), image: filepath.Join(tmp, "image")}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close(), os.Mkdir(d.Dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	tool, err := mkfs()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-q", "-F", "-b", "4096", "-N", "8192", "-J", "size=16",
		d.image).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := d.mount(); err != nil {
		t.Skipf("SKIPPED: a loop-mounted ext4: %v", err)
	}
	t.Cleanup(d.unmount)
	return d
}

// shelf returns a directory for disk images, in memory if there is enough.
func shelf(t *testing.T) string {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &s); err != nil || s.Bavail*uint64(s.Bsize) < 2*size {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "sluice-disk-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// mount attaches the image to a loop device, which goes with the mount.
func (d *Disk) mount() error {
	f, err := os.OpenFile(d.image, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer control.Close()
	for range 20 { // others take loop devices too
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return fmt.Errorf("find a loop device: %w", err)
		}
		err = attach(fmt.Sprintf("/dev/loop%d", n), f, d.Dir)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return errors.New("every loop device was taken meanwhile")
}

func attach(path string, image *os.File, dir string) error {
	dev, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	config := unix.LoopConfig{Fd: uint32(image.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopConfigure(int(dev.Fd()), &config); err != nil {
		return fmt.Errorf("set up %s: %w", path, err)
	}
	if err := unix.Mount(path, dir, "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	return nil
}

func (d *Disk) unmount() {
	d.t.Helper()
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if err = unix.Unmount(d.Dir, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if err != nil {
		d.t.Fatalf("unmount the disk: %v", err)
	}
}

// Of linux/fs/ext4/ext4.h.
const (
	ext4Shutdown   = 0x8004587d // _IOR('X', 125, __u32)
	shutdownNoSync = 2          // nothing goes to the device any more, the log neither
)

// Cut cuts the power: from now on nothing reaches the device. Stop every writer first,
// so that all it announced was announced before the cut. Restart makes the disk whole.
func (d *Disk) Cut() {
	d.t.Helper()
	f, err := os.Open(d.Dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, shutdownNoSync); err != nil {
		d.t.Fatalf("cut the power: %v", err)
	}
	// What a file system does while it is unmounted must not count, so the next mount
	// begins with a copy.
	d.gen++
	next := fmt.Sprintf("%s.%d", strings.TrimSuffix(d.image, filepath.Ext(d.image)), d.gen)
	if err := copySparse(d.image, next); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Remove(d.image); err != nil {
		d.t.Fatal(err)
	}
	d.image = next
}

// Restart mounts what the device had when the power was cut: the journal is
// replayed. Nobody may have a file open on the disk.
func (d *Disk) Restart() {
	d.t.Helper()
	d.unmount()
	if err := d.mount(); err != nil {
		d.t.Fatal(err)
	}
}

// copySparse copies what is not a hole.
func copySparse(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	err = out.Truncate(size)
	for at := int64(0); err == nil; {
		var begin, end int64
		if begin, err = unix.Seek(int(in.Fd()), at, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) {
			err = nil
			break // no data from here on
		}
		if err == nil {
			end, err = unix.Seek(int(in.Fd()), begin, unix.SEEK_HOLE)
		}
		if err == nil {
			_, err = io.Copy(io.NewOffsetWriter(out, begin), io.NewSectionReader(in, begin, end-begin))
		}
		at = end
	}
	return errors.Join(err, out.Close())
}

// Stop suspends all threads of a process, and returns when they stand still.
func Stop(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return // it is over
	}
	tasks := fmt.Sprintf("/proc/%d/task", p.Pid)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if stopped(tasks) {
			return
		}
	}
	t.Fatal("the writer cannot be stopped")
}

// stopped reports whether every thread is stopped, or waits in the kernel and will be
// stopped when it leaves.
func stopped(tasks string) bool {
	all, err := os.ReadDir(tasks)
	if err != nil {
		return true
	}
	for _, task := range all {
		stat, err := os.ReadFile(filepath.Join(tasks, task.Name(), "stat"))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if after != "" && !strings.ContainsAny(after[:1], "TDZX") {
			return false
		}
	}
	return true
}

// Fill writes a file until there is no room; free removes it.
func (d *Disk) Fill() (free func()) {
	d.t.Helper()
	path := filepath.Join(d.Dir, "full")
	f, err := os.Create(path)
	if err != nil {
		d.t.Fatal(err)
	}
	for size := 8 << 20; size >= 512; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if err := f.Close(); err != nil {
		d.t.Log(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			d.t.Fatal(err)
		}
	}
}
