//go:build unix

package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/backup"
)

// childRestore restores SLUICE_OUT to SLUICE_DIR, and kills itself at the fault point SLUICE_FAULT.
func childRestore() {
	r := backup.Restoration{
		File: os.Getenv("SLUICE_OUT"), Dir: os.Getenv("SLUICE_DIR"), Unpack: backup.UnpackApart,
		Finish:   func(_ string, s backup.Summary) (json.RawMessage, error) { return json.Marshal(s) },
		HandOver: func(string) error { return nil },
		Fault: func(point string) error {
			if point == os.Getenv("SLUICE_FAULT") {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		},
	}
	if _, err := r.Restore(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// Wherever a restore is killed, what it left says that it is not finished, and the next one finishes it, of the same
// backup or another.
func TestRestoreKilled(t *testing.T) {
	from := data(t, 300)
	first, second := written(t, from), written(t, data(t, 10))
	want := everything(t, from)
	for _, point := range backup.RestoreFaults {
		for _, file := range []string{first, second} {
			dir := filepath.Join(t.TempDir(), "data")
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "SLUICE_CHILD=restore", "SLUICE_DIR="+dir, "SLUICE_OUT="+file, "SLUICE_FAULT="+point)
			said, err := cmd.CombinedOutput()
			if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
				t.Fatalf("%s: the child ended by itself: %v\n%s", point, err, said)
			}
			left, _ := filepath.Glob(dir + "*")
			if len(left) != 1 || !errors.Is(backup.Unfinished(left[0]), backup.ErrUnfinished) || !backup.Begun(dir) {
				t.Errorf("%s: left %v", point, left)
			}
			if _, err := restore(t.Context(), first, dir, nil, unpackHere); err != nil {
				t.Fatalf("%s: repeated: %v", point, err)
			}
			if d := cmp.Diff(want, everything(t, dir)); d != "" {
				t.Errorf("%s: %s", point, d)
			}
			if left, _ := filepath.Glob(dir + "*"); len(left) != 1 || backup.Unfinished(dir) != nil || backup.Begun(dir) {
				t.Errorf("%s: at the end there is %v", point, left)
			}
		}
	}
}

// written makes a backup of a data directory.
func written(t *testing.T, dir string) (file string) {
	t.Helper()
	p, done, err := preparePlan(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	file = filepath.Join(t.TempDir(), "b.tar")
	if _, err := backup.Create(t.Context(), p, backup.Order{Path: file}); err != nil {
		t.Fatal(err)
	}
	return file
}

// Of two restores to one directory the second is refused, and touches nothing.
func TestRestoreTwice(t *testing.T) {
	backup.SetLockTime(50 * time.Millisecond)
	defer backup.SetLockTime(5 * time.Second)
	file, dir := written(t, data(t, 10)), filepath.Join(t.TempDir(), "data")
	r := backup.Restoration{File: file, Dir: dir, Unpack: unpackHere,
		Finish: func(temp string, s backup.Summary) (json.RawMessage, error) {
			before, _ := os.ReadDir(temp)
			if _, err := restore(t.Context(), file, dir, nil, unpackHere); !errors.Is(err, backup.ErrRestoring) ||
				!strings.Contains(err.Error(), "wait") {
				t.Errorf("meanwhile: %v", err)
			}
			if after, _ := os.ReadDir(temp); len(after) != len(before) || len(after) < 4 {
				t.Errorf("there were %v, now %v", before, after)
			}
			return json.Marshal(s)
		}}
	if _, err := r.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
}
