package jail

import "slices"

// Levels of isolation, strongest first.
const (
	LevelFull    = "full"    // seccomp strict, limits, and a second layer around files, sockets and other processes
	LevelPartial = "partial" // at least one kernel layer
	LevelProcess = "process" // a process and limits only
)

// States of the seccomp layer.
const (
	SeccompStrict = "strict" // filters A and B
	SeccompLoad   = "load"   // only filter A
	SeccompOff    = "off"
)

// Kinds of uid a worker runs under.
const (
	UIDOwn    = "own"    // a uid that no other live worker of this host has
	UIDShared = "shared" // the host's own uid
)

// Names of namespaces, in the order in which they are reported.
const (
	NamespaceUser    = "user"
	NamespaceNetwork = "network"
	NamespaceMount   = "mount"
	NamespacePID     = "pid"
	NamespaceIPC     = "ipc"
	NamespaceUTS     = "uts"
)

// Isolation describes the layers around one worker, as its run reports them. Namespaces is never nil. A returned value
// is never modified.
type Isolation struct {
	Level      string   `json:"level"`
	Namespaces []string `json:"namespaces"`
	// Landlock is the Landlock ABI in force, 0 if off. If the kernel's scope for signals cannot be used (see
	// signalScopeFixed), it is the ABI before that.
	Landlock int    `json:"landlock"`
	Seccomp  string `json:"seccomp"`
	Rlimits  bool   `json:"rlimits"`
	UID      string `json:"uid"`
}

// none returns the isolation of a worker without any layer.
func none() Isolation {
	return Isolation{Level: LevelProcess, Namespaces: []string{}, Seccomp: SeccompOff, UID: UIDShared}
}

// judged returns i with the level that follows from its layers.
func (i Isolation) judged() Isolation {
	switch {
	case i.Seccomp == SeccompStrict && i.Rlimits && i.doublyWalled():
		i.Level = LevelFull
	case len(i.Namespaces) > 0, i.Landlock > 0, i.Seccomp != SeccompOff, i.UID == UIDOwn:
		i.Level = LevelPartial
	default:
		i.Level = LevelProcess
	}
	return i
}

// scopedLandlock is the first Landlock ABI that also covers signals and abstract sockets.
const scopedLandlock = 6

// doublyWalled reports whether everything that the filters block is also blocked by another layer: files, sockets, and
// the processes of the host.
func (i Isolation) doublyWalled() bool {
	scoped := i.Landlock >= scopedLandlock
	files := i.has(NamespaceMount) || i.Landlock > 0
	sockets := i.has(NamespaceNetwork) || scoped
	processes := i.has(NamespacePID) || i.UID == UIDOwn || scoped
	return files && sockets && processes
}

func (i Isolation) has(namespace string) bool { return slices.Contains(i.Namespaces, namespace) }

// Levels and states of seccomp, weakest first.
var (
	levels        = []string{LevelProcess, LevelPartial, LevelFull}
	seccompStates = []string{SeccompOff, SeccompLoad, SeccompStrict}
)

// Meets reports whether i is at least level, one of the Level constants. Nothing meets an unknown level.
func (i Isolation) Meets(level string) bool {
	want := slices.Index(levels, level)
	return want >= 0 && slices.Index(levels, i.Level) >= want
}

// Lacks returns the names of the layers in promised that i lacks or has in a weaker form.
func (i Isolation) Lacks(promised Isolation) []string {
	var lacking []string
	for _, name := range promised.Namespaces {
		if !i.has(name) {
			lacking = append(lacking, name+" namespace")
		}
	}
	if i.Landlock < promised.Landlock {
		lacking = append(lacking, "landlock")
	}
	if slices.Index(seccompStates, i.Seccomp) < slices.Index(seccompStates, promised.Seccomp) {
		lacking = append(lacking, "seccomp")
	}
	if promised.Rlimits && !i.Rlimits {
		lacking = append(lacking, "rlimits")
	}
	if promised.UID == UIDOwn && i.UID != UIDOwn {
		lacking = append(lacking, "uid")
	}
	return lacking
}
