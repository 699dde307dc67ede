package jail

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FreeMemory returns how many bytes this process and its workers may still use, limited by the machine and by each
// control group that contains all of them. known is false if that is unknown.
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

// free returns what the limit of the group leaves, not counting memory that only caches files as used.
func (g *groups) free() (left uint64, bounded bool) {
	bound, used, cached := "memory.max", "memory.current", "inactive_file"
	if !g.unified {
		bound, used, cached = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	}
	file := func(name string) string { return contentOf(filepath.Join(g.parents[0], name)) }
	most, bounded := numberIn(file(bound), "") // "max" means no limit
	now, counted := numberIn(file(used), "")
	if !bounded || !counted {
		return 0, false
	}
	spare, _ := numberIn(file("memory.stat"), cached)
	now -= min(now, spare)
	return most - min(most, now), true
}

// numberIn returns the number that follows name on a line of text.
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

// contentOf returns the content of a file of the kernel, "" if it cannot be read.
func contentOf(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
