//go:build unix

package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/store"
)

// childBackup makes a backup of SLUICE_DIR and kills itself at a fault point.
func childBackup() {
	left := 0
	fmt.Sscan(os.Getenv("SLUICE_FAULT"), &left)
	hit := func(string) error {
		if left--; left == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	p, _, err := preparePlan(os.Getenv("SLUICE_DIR"))
	if err == nil {
		id, _ := age.GenerateX25519Identity()
		_, err = backup.Create(context.Background(), p, backup.Order{
			Path: os.Getenv("SLUICE_OUT"), To: backup.Recipients{id.Recipient()}, Fault: hit,
			Drill: func(ctx context.Context, r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return errors.Join(err, hit(""))
			},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// Wherever it is killed, there is no file under the final name, or all of it; what is left is
// swept away.
func TestKilled(t *testing.T) {
	dir, outs := data(t, 3000), t.TempDir()
	kills := 0
	for n := 1; ; n++ {
		out := filepath.Join(outs, "b.age")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SLUICE_CHILD=backup", "SLUICE_DIR="+dir, "SLUICE_OUT="+out,
			fmt.Sprint("SLUICE_FAULT=", n))
		said, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
			t.Fatalf("the child ended by itself: %v\n%s", err, said)
		}
		kills++
		names, err := os.ReadDir(outs)
		if err != nil || len(names) != 1 || !strings.HasPrefix(names[0].Name(), ".tmp-") {
			t.Fatalf("killed at %d: left %v, %v", n, names, err)
		}
		foreign := filepath.Join(outs, ".tmp-host_1-"+fmt.Sprint(n))
		if err := os.WriteFile(foreign, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := backup.Sweep(dir, outs, "host_0"); err != nil {
			t.Fatal(err)
		}
		if names, err := os.ReadDir(outs); err != nil || len(names) != 1 || names[0].Name() != filepath.Base(foreign) {
			t.Fatalf("left of its own, or not of another: %v, %v", names, err)
		}
		if err := os.Remove(foreign); err != nil {
			t.Fatal(err)
		}
	}
	if kills != 5 { // four parts and the drill
		t.Errorf("%d kills", kills)
	}
}

// Whatever goes wrong, no file is left.
func TestFailedCreate(t *testing.T) {
	dir := data(t, 50)
	p := plan(t, dir)
	boom := errors.New("boom")
	full := fmt.Errorf("%w: boom", store.ErrNoSpace)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		order backup.Order
		want  error
	}{
		"drill":     {t.Context(), backup.Order{Drill: func(context.Context, io.Reader) error { return boom }}, boom},
		"fault":     {t.Context(), backup.Order{Fault: func(string) error { return boom }}, boom},
		"full disk": {t.Context(), backup.Order{Room: func() error { return full }}, store.ErrNoSpace},
		"cancelled": {cancelled, backup.Order{}, context.Canceled},
	} {
		out := t.TempDir()
		c.order.Path = filepath.Join(out, "b.tar")
		if _, err := backup.Create(c.ctx, p, c.order); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if names, err := os.ReadDir(out); err != nil || len(names) > 0 {
			t.Errorf("%s: left %v, %v", name, names, err)
		}
	}
	// What is there stays.
	out := filepath.Join(t.TempDir(), "b.tar")
	if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Create(t.Context(), p, backup.Order{Path: out}); !errors.Is(err, backup.ErrExists) {
		t.Errorf("existing file: %v", err)
	}
	if b, err := os.ReadFile(out); string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

// A module that is not its digest is no part of a backup, and neither is one that changes
// meanwhile.
func TestChangedModule(t *testing.T) {
	dir := data(t, 5)
	p := plan(t, dir)
	path := filepath.Join(dir, "modules", digest([]byte("\x00asm and so on"))+".wasm")
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("\x00asm and no more"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Create(t.Context(), p, backup.Order{Path: filepath.Join(t.TempDir(), "b.tar")}); err == nil ||
		!strings.Contains(err.Error(), "changed while") {
		t.Errorf("changed: %v", err)
	}
	other := data(t, 5)
	path = filepath.Join(other, "modules", digest([]byte("x"))+".wasm")
	if err := os.WriteFile(path, []byte("y"), 0o400); err != nil {
		t.Fatal(err)
	}
	_, done, err := preparePlan(other)
	if done(); err == nil || !strings.Contains(err.Error(), "install it again") {
		t.Errorf("wrong digest: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)); err != nil {
		t.Fatal(err)
	}
	_, done, err = preparePlan(other)
	if done(); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("link: %v", err)
	}
}

func TestRecipients(t *testing.T) {
	dir := t.TempDir()
	if to, err := backup.ReadRecipients(dir); err != nil || len(to) != 0 {
		t.Errorf("none: %v, %v", to, err)
	}
	file := filepath.Join(t.TempDir(), "key")
	first, err := backup.NewIdentity(dir, file)
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("identity: %v, %v", fi.Mode(), err)
	}
	if _, err := backup.NewIdentity(dir, file); !errors.Is(err, os.ErrExist) {
		t.Errorf("an identity was written over: %v", err)
	}
	second, err := backup.NewIdentity(dir, file+"2")
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "backup.recipients")
	text, err := os.ReadFile(list)
	if err != nil || string(text) != first+"\n"+second+"\n" {
		t.Errorf("%s, %v", text, err)
	}
	if err := os.WriteFile(list, []byte("# mine\n\n  "+first), 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := backup.ReadRecipients(dir)
	if err != nil || len(to) != 1 {
		t.Errorf("%v, %v", to, err)
	}
	ids, err := backup.ReadIdentities(file)
	if err != nil || len(ids) != 1 {
		t.Errorf("%d identities, %v", len(ids), err)
	}
	if _, err := backup.ReadIdentities(list); !errors.Is(err, backup.ErrKey) {
		t.Errorf("recipients as identities: %v", err)
	}
	if err := os.Chmod(list, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.ReadRecipients(dir); !errors.Is(err, backup.ErrRecipient) ||
		!strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("others can add theirs: %v", err)
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "age1", "ssh-ed25519 AAAA", first + "\n" + second,
		strings.Fields(string(secret))[len(strings.Fields(string(secret)))-1]} {
		_, err := backup.ParseRecipients([]string{bad})
		if !errors.Is(err, backup.ErrRecipient) || strings.Contains(err.Error(), "SECRET-KEY-1") {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
}
