package jail

import (
	"os"
	"path/filepath"
	"testing"
)

// What a control group leaves is its bound but for what is in use, where what is only cached is not.
func TestFreeMemory(t *testing.T) {
	for name, c := range map[string]struct {
		unified bool
		files   map[string]string
		want    uint64
		bounded bool
	}{
		"version 2": {true, map[string]string{"memory.max": "1000\n", "memory.current": "700\n",
			"memory.stat": "anon 400\ninactive_file 200\n"}, 500, true},
		"version 1": {false, map[string]string{"memory.limit_in_bytes": "1000\n", "memory.usage_in_bytes": "700\n",
			"memory.stat": "inactive_file 1\ntotal_inactive_file 100\n"}, 400, true},
		"over its bound": {true, map[string]string{"memory.max": "1000\n", "memory.current": "1200\n"}, 0, true},
		"unbounded":      {true, map[string]string{"memory.max": "max\n", "memory.current": "700\n"}, 0, false},
		"the root":       {true, map[string]string{"memory.stat": "inactive_file 200\n"}, 0, false},
		"cached alone": {true,
			map[string]string{"memory.max": "1000\n", "memory.current": "100\n", "memory.stat": "inactive_file 200\n"}, 1000,
			true},
	} {
		g := &groups{parents: []string{t.TempDir()}, unified: c.unified}
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(g.parents[0], file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, bounded := g.free(); got != c.want || bounded != c.bounded {
			t.Errorf("%s: %d %v", name, got, bounded)
		}
	}
	if free, known := FreeMemory(); !known || free == 0 {
		t.Errorf("this machine has %d bytes left, %v", free, known)
	}
}
