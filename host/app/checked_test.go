package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host/app"
)

// TestSharedModule: those that have a module at the same time have one copy of it, and a file that
// was changed meanwhile is read and refused.
func TestSharedModule(t *testing.T) {
	h := serviceHost(t)
	k := installAs(t, h, askModule(t), nil)
	all := make([]*app.Loaded, 20)
	var loading sync.WaitGroup
	for i := range all {
		loading.Go(func() {
			l, err := h.Load(t.Context(), k.Name, "")
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = l
		})
	}
	loading.Wait()
	if t.Failed() {
		return
	}
	for _, l := range all {
		if l.CheckedModule != all[0].CheckedModule {
			t.Error("a copy of its own")
		}
	}
	path := filepath.Join(h.DataDir, "modules", strings.TrimPrefix(string(k.Digest), "sha256:")+".wasm")
	changed := append([]byte(nil), all[0].Wasm...)
	changed[len(changed)-1] ^= 1
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Load(t.Context(), k.Name, ""); err == nil ||
		!strings.Contains(err.Error(), "was changed since it was installed") {
		t.Error(err)
	}
}
