package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/patience"
)

const (
	helloDeadline = 10 * time.Second
	spawnBackoff  = time.Second
	// refillDelay leaves the processors to the run that has just taken a worker.
	refillDelay = 100 * time.Millisecond
)

// A blank is a worker that has said hello and has no task yet.
type blank struct {
	process   *jail.Process
	channel   *channel
	startedAt time.Time
	spawn     time.Duration // from the request to hello; 0 if the worker waited in the pool
}

func (b *blank) close() error { return b.process.Close() }

func (b *blank) hasExited() bool {
	select {
	case <-b.process.Done():
		return true
	default:
		return false
	}
}

// A pool keeps blank workers ready, so that a run need not wait for a process to start.
type pool struct {
	launcher  *jail.Launcher
	build     string
	limits    abi.WireLimits
	once      bool // workers taken are not replaced
	blankLife time.Duration
	onError   func(error) // called when a blank cannot be started

	wake chan struct{} // capacity 1; makes maintain refill
	stop context.CancelFunc
	wait sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	want   int
	idle   []*blank // oldest first
	closed bool
}

func openPool(l *jail.Launcher, o Options) *pool {
	ctx, stop := context.WithCancel(context.Background())
	p := &pool{
		launcher: l, build: o.BuildID, limits: o.Limits, want: o.Prespawn, once: o.OneRun, blankLife: o.BlankLife,
		onError: func(err error) { o.Log.Warn("worker not started in advance", "err", err) },
		wake:    make(chan struct{}, 1), stop: stop,
	}
	if p.want > 0 {
		p.wait.Go(func() { p.maintain(ctx) })
	}
	return p
}

// take returns a waiting worker, or a new one if none waits.
func (p *pool) take(ctx context.Context) (*blank, error) {
	for {
		b, err := p.pop()
		if err != nil {
			return nil, err
		}
		p.signal()
		if b == nil {
			return p.spawn(ctx)
		}
		if b.hasExited() {
			_ = b.close() // it has ended by itself
			continue
		}
		b.spawn = 0
		return b, nil
	}
}

// newBlank returns a new worker.
func (p *pool) newBlank(ctx context.Context) (*blank, error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	return p.spawn(ctx)
}

func (p *pool) pop() (*blank, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.once {
		p.want = 0
	}
	if len(p.idle) == 0 {
		return nil, nil
	}
	b := p.idle[0]
	p.idle = p.idle[1:]
	return b, nil
}

func (p *pool) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// maintain replaces missing workers and ends old ones, until ctx is done.
func (p *pool) maintain(ctx context.Context) {
	for ctx.Err() == nil {
		pause := p.refill(ctx)
		select {
		case <-ctx.Done():
		case <-p.wake:
			sleep(ctx, refillDelay)
		case <-time.After(pause):
		}
	}
}

// sleep returns after d or when ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// refill ends expired workers, starts missing ones, and returns how long to wait until the next refill.
func (p *pool) refill(ctx context.Context) time.Duration {
	for _, b := range p.expired(time.Now()) {
		_ = b.close() // a blank holds nothing
	}
	for ctx.Err() == nil && p.hasMissing() {
		b, err := p.spawn(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.onError(err)
			}
			return spawnBackoff
		}
		p.add(b)
	}
	return p.untilExpiry(time.Now())
}

func (p *pool) hasMissing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && len(p.idle) < p.want
}

func (p *pool) add(b *blank) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.idle = append(p.idle, b)
	}
	p.mu.Unlock()
	if closed {
		_ = b.close() // a blank holds nothing
	}
}

func (p *pool) expired(now time.Time) []*blank {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := slices.IndexFunc(p.idle, func(b *blank) bool { return now.Sub(b.startedAt) < p.blankLife })
	if keep < 0 {
		keep = len(p.idle)
	}
	old := slices.Clone(p.idle[:keep])
	p.idle = p.idle[keep:]
	return old
}

func (p *pool) untilExpiry(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return p.blankLife
	}
	return max(p.blankLife-now.Sub(p.idle[0].startedAt), time.Millisecond)
}

// spawn starts a worker and reads its hello.
func (p *pool) spawn(ctx context.Context) (*blank, error) {
	began := time.Now()
	process, err := p.launcher.Start(ctx)
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	b := &blank{process: process, channel: newChannel(process.Socket, p.limits), startedAt: began}
	if err := b.hello(ctx, p.build); err != nil {
		return nil, errors.Join(fmt.Errorf("start worker: %w", err), b.close())
	}
	b.spawn = time.Since(began)
	return b, nil
}

// errBlankLost marks a worker that died before it read its task, so the task is not to blame.
var errBlankLost = errors.New("worker died while it waited")

// withBlank calls use with a blank worker; use ends the worker if it fails. After errBlankLost from a worker that had
// waited, it tries another: at most Options.Prespawn from the pool, then a new one.
func (s *Sandbox) withBlank(ctx context.Context, use func(*blank) error) error {
	for left := s.options.Prespawn; ; left-- {
		take := s.pool.take
		if left <= 0 {
			take = s.pool.newBlank
		}
		b, err := take(ctx)
		if err != nil {
			return launchFailure(err)
		}
		waited := b.spawn == 0
		err = use(b)
		if !errors.Is(err, errBlankLost) {
			return err
		}
		if !waited {
			return launchFailure(err)
		}
		s.options.Log.Warn("a blank worker was lost", "err", err)
	}
}

// hello reads the worker's first message and refuses a worker of another build.
func (b *blank) hello(ctx context.Context, build string) error {
	release := deadline(ctx, b.process.Socket, patience.For(helloDeadline))
	defer release()
	h, buf, err := b.channel.next()
	if err != nil {
		if busy := patience.Busy(); busy != "" && errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("no hello: %s%s", busy, b.stderrTail())
		}
		return fmt.Errorf("no hello: %w%s", err, b.stderrTail())
	}
	defer giveBuffer(buf)
	if h.Call != abi.CallHello {
		return fmt.Errorf("%w: call %d before hello", abi.ErrWire, h.Call)
	}
	hello, err := abi.ParseHello(buf.b[:h.Length])
	if err != nil {
		return err
	}
	if hello.Build != build {
		return fmt.Errorf("worker is of another build: %q, this is %q", hello.Build, build)
	}
	return nil
}

// stderrTail kills the worker and returns the end of its stderr for an error text.
func (b *blank) stderrTail() string {
	if err := b.process.Kill(); err != nil {
		return ""
	}
	exit, err := b.process.Wait()
	if err != nil || len(exit.Stderr) == 0 {
		return ""
	}
	return fmt.Sprintf(" (it said: %q)", exit.Stderr[max(0, len(exit.Stderr)-512):])
}

// deadline makes reads from socket fail after d or when ctx is done, until release is called.
func deadline(ctx context.Context, socket *os.File, d time.Duration) (release func()) {
	_ = socket.SetReadDeadline(time.Now().Add(d)) // a closed socket fails the read
	stop := context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) })
	return func() {
		stop()
		_ = socket.SetReadDeadline(time.Time{}) // see above
	}
}

// close ends all waiting workers and stops maintain.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.stop()
	for _, b := range idle {
		_ = b.close() // a blank holds nothing
	}
	p.wait.Wait()
}
