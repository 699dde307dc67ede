package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/campaign"
)

// inside names the directory for the disk, in the environment of the process that may
// mount one.
const inside = "SLUICE_CRASH_DISK"

// TestFullDisk runs the test proper in a mount namespace of its own.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(inside); dir != "" {
		fillDisk(t, newDisk(t, dir))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if os.IsPermission(err) {
		t.Skipf("SKIPPED: mounting a disk that can be full needs root: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("on a small disk: %v", err)
	}
}

// A disk is a tmpfs whose size can be changed while it is used.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(t *testing.T, dir string) disk {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=48m,mode=0755"); err != nil {
		t.Fatal(err)
	}
	return disk{t, dir}
}

// leave changes the size of the disk so that this many bytes are free.
func (d disk) leave(free int64) {
	d.t.Helper()
	var s syscall.Statfs_t
	err := syscall.Statfs(d.dir, &s)
	if err == nil {
		used := int64(s.Blocks-s.Bfree) * s.Bsize
		err = syscall.Mount("tmpfs", d.dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", max(used+free, s.Bsize)))
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// What the disk has free at each level that the host acts on: enough to start, too little for
// records, too little to keep the store open, and nothing.
const (
	freePlenty = 900 << 20
	freeLittle = 200 << 20
	freeScarce = 32 << 20
	freeNone   = 0
)

// still is how long nothing must happen for a run to count as waiting: the store
// measures every second.
const still = 2500 * time.Millisecond

// fillDisk watches a host on a full disk from outside. On a disk that is too small no
// run starts, and the refusal says why; a disk that fills during a run makes the run
// wait, not fail, and it continues by itself; a host that ends while the disk is full
// loses nothing that it announced.
func fillDisk(t *testing.T, d disk) {
	c := campaign.New(t, "full disk")
	adopt(t)
	w := newWitness(program{t: t, data: filepath.Join(d.dir, "data")})
	refusedForSpace(w)
	d.leave(freePlenty)
	w.undisturbed(pagesPerRun)
	w.check()
	besideFull(d, w)
	w.check()

	// The disk fills, and is freed again.
	l := w.start(w.committed + 8*pagesPerRun)
	l.await(50)
	for _, free := range []int64{freeLittle, freeScarce} {
		d.leave(free)
		c.Cycle()
		if !l.quiet(still) {
			t.Fatalf("with %d MiB free the run did not wait: %s%s", free>>20, l.out.String(), l.errs.String())
		}
		t.Logf("with %d MiB free the run waits after %d events", free>>20, len(l.seen))
	}
	n := len(l.seen)
	d.leave(freePlenty)
	l.await(n + 1)
	if len(l.seen) == n {
		t.Error("the run did not go on when space was back")
	}
	w.succeed(l)
	w.check()

	// The disk fills to the last byte, and the host ends.
	l = w.start(w.committed + 8*pagesPerRun)
	l.await(50)
	d.leave(freeNone)
	c.Cycle()
	waiting := l.quiet(still)
	_ = l.cmd.Process.Kill()
	w.saw(l.rest())
	err := l.cmd.Wait()
	orphansGone(t)
	fault := strings.Contains(l.errs.String(), "SIGBUS")
	t.Logf("on a full disk after %d events: waiting=%v fault=%v, then %v", len(l.seen), waiting, fault, err)
	if !waiting && !fault { // the host did not notice in time; the next start must cope
		t.Errorf("the run ended by itself: %s%s", l.out.String(), l.errs.String())
	}
	d.leave(freeNone)
	refusedForSpace(w)
	d.leave(freePlenty)
	w.check()
	c.Checked(len(w.acked))
	w.complete()
}

// refusedForSpace: on a full disk nothing starts or opens; the message says
// which directory has no space and what to do.
func refusedForSpace(w *witness) {
	w.p.t.Helper()
	refused(w.p, w.p.run(pagesPerRun), "store_no_space", w.p.data, "free some disk space")
}

// besideFull: files beside the store survive a full disk. No secret and no module is
// stored in part, what was there before stays, and the message names what was not
// written.
func besideFull(d disk, w *witness) {
	t := w.p.t
	t.Helper()
	set := func(value string) outcome {
		cmd := w.p.command("secret", "set", "pages", "token", "--file", "-")
		cmd.Stdin = strings.NewReader(value)
		return w.p.finish(cmd)
	}
	if o := set("old"); o.code != 0 {
		t.Fatal(o.errs)
	}
	d.leave(freeNone)
	for _, value := range []string{"new", strings.Repeat("n", 9000)} {
		o := set(value)
		want := "old"
		if o.code == 0 { // some sizes of file need no new block
			want = value
		} else if !strings.Contains(o.errs, "token.age") || !strings.Contains(o.errs, "no space left") {
			t.Errorf("secret set on a full disk: code %d, %s", o.code, o.errs)
		}
		if got, err := secret(w.p.data, "pages", "token"); err != nil || got != want {
			t.Errorf("secret set on a full disk: the secret has %d bytes, want %d: %v", len(got), len(want), err)
		}
	}
	if o := w.p.do("secret", "rotate"); o.code == 0 {
		t.Error("all secrets were rotated on a full disk")
	}
	if got, err := secret(w.p.data, "pages", "token"); err != nil || got != "old" {
		t.Errorf("after a rotation on a full disk the secret has %d bytes: %v", len(got), err)
	}

	for _, free := range []int64{freeNone, 2 << 20, 66 << 20} { // the last one only until the ballast is made
		d.leave(free)
		for _, args := range [][]string{{"install", built.pages, "--json"}, {"grant", built.pages, "--json"}} {
			refused(w.p, w.p.command(args...), "store_no_space", w.p.data, "free some disk space")
		}
	}
	d.leave(freePlenty)
	if installed := one[[]struct{}](w.p, "connectors"); len(installed) != 0 {
		t.Error("a connector is listed that could not be installed")
	}
	if left, err := filepath.Glob(filepath.Join(w.p.data, "modules", "*")); err != nil || len(left) != 0 {
		t.Errorf("left of an installation: %v, %v", left, err)
	}
	for _, args := range [][]string{{"secret", "rotate"}, {"install", built.pages}, {"inspect", "pages"}} {
		if o := w.p.do(args...); o.code != 0 {
			t.Errorf("with space again, %v: %s", args, o.errs)
		}
	}
}
