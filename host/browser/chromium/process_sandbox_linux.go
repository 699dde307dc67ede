package chromium

import (
	"os"
	"strconv"
	"strings"
)

// inspect looks at the renderers below a browser's main process, from outside; the
// worst of them counts. false is none there, or none whose filter is in place yet: a
// fresh one sets it up before it runs anything of a page.
func inspect(browser int) (worst sandbox, found bool) {
	for _, p := range below(processes(), browser) {
		if p.zombie || !p.says("--type=renderer") {
			continue
		}
		s := renderer(p.pid, browser)
		if !found {
			worst, found = s, true
			continue
		}
		worst = sandbox{worse(worst.User, s.User), worse(worst.Network, s.Network), worse(worst.PID, s.PID), worse(worst.Seccomp, s.Seccomp)}
	}
	return worst, found
}

func worse(a, b wall) wall {
	switch {
	case a == wallMissing || b == wallMissing:
		return wallMissing
	case a == wallUnknown || b == wallUnknown:
		return wallUnknown
	}
	return wallStands
}

// renderer is what holds one process apart from its browser. Namespaces are told by their links, which only
// a host with rights over it may read; user and pid namespaces show elsewhere too.
func renderer(pid, browser int) sandbox {
	dir, whole := "/proc/"+strconv.Itoa(pid), "/proc/"+strconv.Itoa(browser)
	s := sandbox{User: apart(dir, whole, "user"), Network: apart(dir, whole, "net"), PID: apart(dir, whole, "pid"), Seccomp: wallMissing}
	if s.User == wallUnknown {
		s.User = mapped(dir, whole)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return s
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "Seccomp:" && fields[1] == "2":
			s.Seccomp = wallStands
		case fields[0] == "NSpid:" && s.PID == wallUnknown && len(fields) > 2:
			s.PID = wallStands
		}
	}
	return s
}

// apart compares a namespace with the browser's.
func apart(dir, whole, name string) wall {
	theirs, err := os.Readlink(dir + "/ns/" + name)
	if err != nil {
		return wallUnknown
	}
	ours, err := os.Readlink(whole + "/ns/" + name)
	switch {
	case err != nil:
		return wallUnknown
	case theirs == ours:
		return wallMissing
	}
	return wallStands
}

// mapped tells a user namespace by its table of uids.
func mapped(dir, whole string) wall {
	theirs, err := os.ReadFile(dir + "/uid_map")
	if err != nil {
		return wallUnknown
	}
	ours, err := os.ReadFile(whole + "/uid_map")
	switch {
	case err != nil:
		return wallUnknown
	case string(theirs) == string(ours):
		return wallMissing
	}
	return wallStands
}
