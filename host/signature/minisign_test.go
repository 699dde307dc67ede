package signature_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/signature"
)

// The minisign tool and this package read each other's keys and signatures.
func TestMinisign(t *testing.T) {
	tool, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("SKIPPED: minisign is not installed")
	}
	dir := t.TempDir()
	minisign := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tool, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("minisign %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("m.wasm", module)

	ours := newKey(t)
	if err := signature.WriteKey(filepath.Join(dir, "ours"), plain(t, ours), ours.Public()); err != nil {
		t.Fatal(err)
	}
	write("m.wasm.minisig", sign(t, ours, module, claims))
	if out := minisign("-V", "-m", "m.wasm", "-p", "ours.pub"); !strings.Contains(out,
		"connector:"+claims.Connector+"\tversion:1.4.0") {
		t.Errorf("minisign shows no claims: %s", out)
	}
	minisign("-S", "-H", "-s", "ours", "-m", "m.wasm", "-x", "again.minisig")
	if err := verify(read("again.minisig"), ours.Public(), module, claims); err != nil {
		t.Errorf("minisign's signature with our key: %v", err)
	}

	minisign("-G", "-W", "-p", "theirs.pub", "-s", "theirs")
	minisign("-S", "-H", "-s", "theirs", "-m", "m.wasm", "-x", "theirs.minisig", "-t", "by hand")
	theirs, err := signature.ReadPublicKey(read("theirs.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(read("theirs.minisig"), theirs, module, claims); err != nil {
		t.Errorf("minisign's signature: %v", err)
	}
	opened, err := signature.OpenKey(read("theirs"), noPassword)
	if err != nil || opened.Public() != theirs {
		t.Fatalf("minisign's private key: %v", err)
	}
	write("m.wasm.minisig", sign(t, opened, module, claims))
	minisign("-V", "-m", "m.wasm", "-p", "theirs.pub")
}
