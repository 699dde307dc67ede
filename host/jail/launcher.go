package jail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
)

// Default uid ranges for the workers of a root host (jail.uid_range).
const (
	FirstUID = 200000
	LastUID  = 265535

	firstContainerUID = 50000
	lastContainerUID  = 59999
)

// command is the hidden command with which the executable runs as a worker.
const command = "worker"

// goMemory keeps a worker's Go heap well below its memory limit until the worker sets a better value.
const goMemory = 192 * mebibyte

// Options configure a [Launcher]. Hosts use the zero value.
type Options struct {
	// Executable is the path of the program to start, "" for the running one.
	Executable string
	// FirstUID to LastUID is the uid range for workers of a root host, 0 for the defaults.
	FirstUID, LastUID int
	// GID is the workers' group under a root host, 0 for FirstUID. Compiled code must be readable by it.
	GID int
	// Walls are passed on to every worker.
	Walls Walls
}

// Launcher starts workers. It is safe for concurrent use.
type Launcher struct {
	options    Options
	executable *executable
	uids       *uids // nil if workers keep the host's uid
	spawner    *spawner

	mu     sync.Mutex // guards the fields below
	live   map[*Process]struct{}
	closed bool

	once     sync.Once // guards choosing namespaces and groups
	spaces   namespaceSet
	groups   *groups // nil if unavailable
	spaceErr error
}

// NewLauncher opens the executable, so that an upgrade on disk cannot mix versions, and starts the thread that is the
// parent of all workers. The caller must call Close.
func NewLauncher(options Options) (*Launcher, error) {
	options = options.withIDs()
	l := &Launcher{options: options, live: map[*Process]struct{}{}}
	var err error
	if !options.Walls.resolved().NoUID && ownUIDs(options.FirstUID, options.LastUID, options.GID) {
		if l.uids, err = newUIDs(options.FirstUID, options.LastUID); err != nil {
			return nil, err
		}
	}
	if l.executable, err = openExecutable(options.Executable); err != nil {
		return nil, fmt.Errorf("open worker executable: %w", err)
	}
	l.spawner = newSpawner()
	return l, nil
}

// withIDs sets defaults for ids. An unprivileged container has only 65,536 ids, so it has a different default range.
func (o Options) withIDs() Options {
	if o.FirstUID == 0 && o.LastUID == 0 {
		o.FirstUID, o.LastUID = FirstUID, LastUID
		if !ownUIDs(FirstUID, LastUID, FirstUID) {
			o.FirstUID, o.LastUID = firstContainerUID, lastContainerUID
		}
	}
	o.GID = cmp.Or(o.GID, o.FirstUID)
	return o
}

// GID returns the group of the workers, -1 if they keep the host's.
func (l *Launcher) GID() int {
	if l.uids == nil {
		return -1
	}
	return l.options.GID
}

// Start starts a blank worker. args follow the hidden command and must not contain data of the owner. ctx only limits
// the start; the worker lives until it exits, is killed, or the host dies. Start may return errors of the system,
// [ErrNoUID] or [ErrClosed].
func (l *Launcher) Start(ctx context.Context, args ...string) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	identity := Identity{UID: -1, GID: -1, Parent: os.Getpid(), Namespaces: []string{}}
	if l.uids != nil {
		uid, err := l.uids.take()
		if err != nil {
			return nil, fmt.Errorf("start worker: %w", err)
		}
		identity.UID, identity.GID = uid, l.options.GID
	}
	p, err := l.spawn(ctx, args, identity)
	if err != nil {
		l.release(identity.UID)
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := l.enlist(p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// spawn starts the process on the spawner's thread. If it succeeds, the end of the process releases the uid.
func (l *Launcher) spawn(ctx context.Context, args []string, identity Identity) (*Process, error) {
	var p *Process
	var err error
	started := l.spawner.do(ctx, func() {
		if ctx.Err() != nil {
			err = ctx.Err()
			return
		}
		l.once.Do(l.choose)
		if err = l.spaceErr; err == nil {
			p, err = l.begin(args, identity, l.spaces)
		}
	})
	if err = errors.Join(started, err); err != nil {
		return nil, err
	}
	return p, nil
}

// choose determines which namespaces and groups this host can use. It runs on the spawner's thread. Later failures are
// errors and never weaken the isolation silently.
func (l *Launcher) choose() {
	if l.spaces, l.spaceErr = l.negotiate(); l.spaceErr != nil || l.options.Walls.resolved().NoLimits {
		return
	}
	if l.groups = findGroups(); l.groups == nil {
		return
	}
	p, err := l.begin(nil, Identity{UID: -1, GID: -1}, l.spaces)
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		l.groups = nil // they can be made but not entered
	}
}

// Grouped reports whether each worker has a control group. It is only valid once a worker was started.
func (l *Launcher) Grouped() bool { return l.groups != nil }

// begin makes the channel, the pipe and the process. It runs on the spawner's thread.
func (l *Launcher) begin(args []string, identity Identity, spaces namespaceSet) (*Process, error) {
	ends, err := openEnds()
	if err != nil {
		return nil, err
	}
	defer ends.closeWorkers()
	identity.Namespaces = spaces.names()
	handle, err := l.executable.start(append([]string{command}, args...), environment(), ends.workers, spaces)
	if err != nil {
		ends.closeHosts()
		return nil, err
	}
	group, err := l.group(handle)
	if err != nil {
		ends.closeHosts()
		return nil, err
	}
	p := &Process{
		Socket:   ends.socket,
		group:    group,
		config:   Config{Identity: identity, Walls: l.options.Walls.resolved()},
		launcher: l,
		handle:   handle,
		stderr:   follow(ends.stderr),
		done:     make(chan struct{}),
		inherits: ownPeak(),
	}
	go p.reap()
	return p, nil
}

// group makes a control group for a process that was just started. On failure it ends the process.
func (l *Launcher) group(handle *os.Process) (*group, error) {
	made, err := l.groups.make()
	if err == nil {
		if err = made.enter(handle.Pid); err == nil {
			return made, nil
		}
	}
	_ = handle.Kill() // Wait reports a failure
	_, waitErr := handle.Wait()
	return nil, errors.Join(fmt.Errorf("control group of a worker: %w", err), waitErr, made.remove())
}

func (l *Launcher) enlist(p *Process) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	select {
	case <-p.done: // it has already ended and may have been delisted
	default:
		l.live[p] = struct{}{}
	}
	return nil
}

// Live returns the number of workers.
func (l *Launcher) Live() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.live)
}

// delist removes a process that was reaped.
func (l *Launcher) delist(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, p)
	l.release(p.config.Identity.UID)
}

func (l *Launcher) release(uid int) {
	if uid >= 0 {
		l.uids.free(uid)
	}
}

// Close kills the remaining workers, waits for them, and releases the executable and the thread. It is idempotent.
func (l *Launcher) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	left := slices.Collect(maps.Keys(l.live))
	l.mu.Unlock()
	for _, p := range left {
		_ = p.Kill() // waiting below reveals whether it worked
	}
	for _, p := range left {
		<-p.done
	}
	l.spawner.close()
	return l.executable.close()
}

// environment returns the complete environment of a worker.
func environment() []string {
	return []string{
		"GOGC=off",
		"GOMEMLIMIT=" + strconv.Itoa(goMemory),
		"GOMAXPROCS=2",
		"GOTRACEBACK=none",
		"MALLOC_ARENA_MAX=1", // with cgo, each thread would otherwise reserve 64 MiB
	}
}
