package jail

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FreeMemory is how many bytes this process and its workers may still use: of the machine, and of each
// control group that all of them are in. It reports whether that is known.
func FreeMemory() (free uint64, known bool) {
	kib, known := numberIn(contentOf("/proc/meminfo"), "MemAvailable:")
	free = kib << 10
	for _, g := range groupsOf(contentOf("/proc/self/cgroup"), contentOf("/proc/self/mountinfo")) {
		if left, bounded := g.free(); bounded && (!known || left < free) {
			free, known = left, true
		}
	}
	return free, known
}

// free is what the bound of the group leaves, but for what the kernel only caches.
func (g *groups) free() (left uint64, bounded bool) {
	bound, used, cached := "memory.max", "memory.current", "inactive_file"
	if !g.unified {
		bound, used, cached = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	}
	file := func(name string) string { return contentOf(filepath.Join(g.parents[0], name)) }
	most, bounded := numberIn(file(bound), "") // "max" is none
	now, counted := numberIn(file(used), "")
	if !bounded || !counted {
		return 0, false
	}
	spare, _ := numberIn(file("memory.stat"), cached)
	now -= min(now, spare)
	return most - min(most, now), true
}

// numberIn is the number behind a name on a line of text.
func numberIn(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if name == "" && len(f) == 1 {
			f = []string{"", f[0]}
		}
		if len(f) < 2 || f[0] != name {
			continue
		}
		n, err := strconv.ParseUint(f[1], 10, 64)
		return n, err == nil
	}
	return 0, false
}

// contentOf is what a file of the kernel's says, "" where there is none.
func contentOf(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
