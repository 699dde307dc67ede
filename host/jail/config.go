package jail

import "errors"

// Descriptors of a worker. 0 and 1 are the null device, 2 is a pipe to the host.
const (
	SocketFD = 3
	ModuleFD = 4
	DirFD    = 5
	// NoDir is given to [Enter] by a worker that is handed no directory.
	NoDir = -1
)

var (
	// ErrPromise: a layer that the host counts on could not be built. The run ends with
	// launch_failed, failure_code isolation_unavailable.
	ErrPromise = errors.New("promised isolation is unavailable")
	// ErrOrphan: the host died before the worker was ready; the worker exits.
	ErrOrphan = errors.New("host is gone")
	// ErrLimits: a worker was given limits that limit nothing.
	ErrLimits = errors.New("resource limits are incomplete")
	// ErrNoUID: every uid of the range belongs to a live worker.
	ErrNoUID = errors.New("no free worker uid")
	// ErrClosed: the launcher was closed.
	ErrClosed = errors.New("launcher is closed")
	// ErrUnsupported: the operating system does not offer this.
	ErrUnsupported = errors.New("not supported on this operating system")
)

// Identity is what the host knows about a worker it started and the worker
// cannot find out for itself.
type Identity struct {
	// UID and GID are what the worker becomes, -1 to stay what it is.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Parent is the host's pid outside of any namespace.
	Parent int `json:"parent"`
	// Namespaces are the fresh ones it was started in.
	Namespaces []string `json:"namespaces"`
}

// Config tells a worker what to make of itself. The host takes it from
// [Process.Config], adds Limits, Promised and Writable, and sends it over the
// socket together with the descriptors.
type Config struct {
	Identity Identity `json:"identity"`
	Walls    Walls    `json:"walls"`
	Limits   Limits   `json:"limits"`
	// Promised is the isolation the host counts on, usually what its self-test
	// found; nil accepts what there is. A worker that ends up with less fails.
	Promised *Isolation `json:"promised,omitempty"`
	// Writable makes the directory a fresh output directory instead of compiled code to read.
	Writable bool `json:"writable,omitempty"`
}

// Walls says which layers to build. The zero value builds every layer the
// machine has. Leaving one out is for measuring its price and for proving that
// another one holds without it; no configuration of a host reaches it.
type Walls struct {
	// Off leaves out all of them, limits included.
	Off          bool `json:"off,omitempty"`
	NoNamespaces bool `json:"no_namespaces,omitempty"`
	NoUID        bool `json:"no_uid,omitempty"`
	NoLandlock   bool `json:"no_landlock,omitempty"`
	NoSeccomp    bool `json:"no_seccomp,omitempty"`
	NoLimits     bool `json:"no_limits,omitempty"`
}

// resolved spells Off out.
func (w Walls) resolved() Walls {
	if w.Off {
		return Walls{Off: true, NoNamespaces: true, NoUID: true, NoLandlock: true, NoSeccomp: true, NoLimits: true}
	}
	return w
}
