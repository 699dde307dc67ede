package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A start of the program, and of each worker, is a few milliseconds, which is why a package compiles an expression, a
// template or a table when it is first used, not when the program starts.
func TestStart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "worker") // which ends at once, for nobody has started it as one
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	ours := 0
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "init "), " @")
		if !strings.HasPrefix(name, "github.com/sluicehost/sluice/") {
			continue
		}
		var at, took float64
		var bytes, allocs int
		if _, err := fmt.Sscanf(rest, "%f ms, %f ms clock, %d bytes, %d allocs", &at, &took, &bytes, &allocs); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if ours++; allocs > 200 || bytes > 64<<10 {
			t.Errorf("%s makes %d allocations of %d bytes before main", name, allocs, bytes)
		}
	}
	if ours < 10 {
		t.Errorf("the start of %d packages was traced:\n%s", ours, out)
	}
}
