package api_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/app"
)

// The test binary is its own workers.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" {
		for _, op := range unobserved() {
			fmt.Fprintln(os.Stderr, "no test saw it succeed:", op)
			code = 1
		}
	}
	if shared.close != nil {
		if err := shared.close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "close:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// unobserved are the operations whose answer no test has held against its schema.
func unobserved() (out []string) {
	d, err := described()
	if err != nil {
		return []string{err.Error()}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, item := range d.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if op := strings.ToUpper(method) + " " + path; !d.seen[op] {
				out = append(out, op)
			}
		}
	}
	slices.Sort(out)
	return out
}
