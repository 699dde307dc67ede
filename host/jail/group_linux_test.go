package jail

import (
	"fmt"
	"strings"
	"testing"
)

// Where the groups of workers may be, by what the kernel says.
func TestGroupsOf(t *testing.T) {
	const (
		one = "22 1 0:20 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"23 1 0:21 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
			"24 1 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		two = "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	)
	for name, c := range map[string]struct{ own, mounts, want string }{
		"version 1": {"4:memory:/a\n3:cpu,cpuacct:/\n2:pids:/\n", one, "[/sys/fs/cgroup/memory/a /sys/fs/cgroup/pids]"},
		"version 2, nearest first": {"0::/user.slice/app.slice/x.scope\n", two,
			"2[/sys/fs/cgroup/user.slice/app.slice/x.scope] 2[/sys/fs/cgroup/user.slice/app.slice] 2[/sys/fs/cgroup/user.slice] 2[/sys/fs/cgroup]"},
		"both": {"4:memory:/\n2:pids:/\n0::/\n", one + strings.Replace(two, "/sys/fs/cgroup ", "/sys/fs/cgroup/unified ", 1),
			"2[/sys/fs/cgroup/unified] [/sys/fs/cgroup/memory /sys/fs/cgroup/pids]"},
		"a container": {"4:memory:/docker/1/a\n2:pids:/docker/1\n",
			strings.ReplaceAll(one, " / /sys", " /docker/1 /sys"), "[/sys/fs/cgroup/memory/a /sys/fs/cgroup/pids]"},
		"outside of what is mounted": {"4:memory:/other\n2:pids:/other\n",
			strings.ReplaceAll(one, " / /sys", " /docker/1 /sys"), ""},
		"above what is mounted": {"0::/../x\n", two, ""},
		"memory alone":          {"4:memory:/\n", one, ""},
		"none":                  {"", "", ""},
		"garbage":               {":::\n\n0:\n", "x - y\n - \ncgroup2 - cgroup2\n", ""},
	} {
		var got []string
		for _, g := range groupsOf(c.own, c.mounts) {
			version := ""
			if g.unified {
				version = "2"
			}
			got = append(got, version+fmt.Sprint(g.parents))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}
