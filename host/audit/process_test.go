//go:build unix

package audit_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host/audit"
)

// TestMain also is a process that appends until it is killed, and prints what
// was acknowledged.
func TestMain(m *testing.M) {
	dir := os.Getenv("AUDIT_TEST_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	l, err := audit.Open(dir)
	if err != nil {
		panic(err)
	}
	l.SetRoll(4000)
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s.%d", os.Getenv("AUDIT_TEST_NAME"), i)
		if err := l.Append(audit.Event{Action: audit.SecretSet, Target: name, Outcome: audit.Done}); err != nil {
			panic(err)
		}
		fmt.Println(name)
	}
}

// appender runs a process that is killed after so many acknowledged entries, and
// returns them.
func appender(t *testing.T, dir, name string, entries int) (out []string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_TEST_DIR="+dir, "AUDIT_TEST_NAME="+name)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	for s := bufio.NewScanner(pipe); s.Scan(); {
		if out = append(out, s.Text()); len(out) == entries {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	if len(out) < entries {
		t.Errorf("process %s ended after %d entries", name, len(out))
	}
	return out
}

// Processes that append to one log and are killed at any moment lose no acknowledged entry and
// leave a sound chain.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	var acknowledged []string
	for round := range 12 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for w := range 2 {
			wg.Go(func() {
				got := appender(t, dir, fmt.Sprintf("%d.%d", round, w), 1+(round*7+w*3)%11)
				mu.Lock()
				defer mu.Unlock()
				acknowledged = append(acknowledged, got...)
			})
		}
		wg.Wait()
		if r := verify(t, open(t, dir)); !r.OK {
			t.Fatalf("after round %d: %+v", round, r)
		}
	}
	found := map[string]bool{}
	for _, e := range all(t, open(t, dir), audit.Filter{}, 0) {
		found[e.Target] = true
		if e.Action == audit.Damaged {
			t.Errorf("a kill was taken for damage: %+v", e)
		}
	}
	for _, name := range acknowledged {
		if !found[name] {
			t.Errorf("%s was acknowledged and is gone", name)
		}
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl")); len(names) < 2 {
		t.Errorf("the files did not roll: %v", names)
	}
}
