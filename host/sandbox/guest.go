package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

// An Inbound is one call of a guest. The host answers it with [Guest.Reply], or Credit for
// emit, and releases its payload with Release. Payload is untrusted and shares memory with
// a pooled buffer.
type Inbound struct {
	ID      uint32
	Call    abi.Call
	Payload []byte
	buffer  *buffer
}

// Release returns the payload's buffer. No copy of the Inbound may use the payload
// afterwards.
func (in *Inbound) Release() {
	if in.buffer != nil {
		giveBuffer(in.buffer)
		in.buffer, in.Payload = nil, nil
	}
}

// Steps are the durations of the steps of starting a guest.
type Steps struct {
	Spawn       time.Duration // starting a process; 0 if the worker was waiting
	Enter       time.Duration // entering the jail
	Load        time.Duration // mapping compiled code, and closing the jail
	Ready       time.Duration // all of it, as measured by the host
	CPU         time.Duration // CPU time of the worker until it was ready
	Instantiate time.Duration // known at the end
}

// A Guest is one connector in its worker. Only one goroutine may read [Guest.Calls]; the other methods are safe for
// concurrent use.
//
// Invariant: while a call other than an emit awaits its reply, a worker that sends any message is killed.
type Guest struct {
	process   *jail.Process
	channel   *channel
	limits    jail.Limits
	isolation jail.Isolation
	readyCPU  time.Duration
	readyID   uint32
	calls     chan Inbound
	killed    chan struct{} // closed by Kill
	rate      bucket

	mu         sync.Mutex // guards the fields below; never held across I/O
	started    bool
	waiting    abi.Call // call that awaits a reply; 0 for none
	waitingID  uint32
	frames     int64 // credit the worker has left
	bytes      int64
	resumed    chan struct{} // nil unless suspended; closed by Resume
	stopped    bool          // killed is closed
	fault      error         // why the host killed the worker
	exitReport *abi.Exit     // the worker's own report
	hostCalls  uint64
	bytesIn    uint64
	peak       uint64 // largest resident set seen
	steps      Steps
	exit       Exit
}

// Isolation returns the isolation of the guest.
func (g *Guest) Isolation() jail.Isolation { return g.isolation }

// MemoryWall returns the limit of the worker's private memory, in bytes.
func (g *Guest) MemoryWall() uint64 { return g.limits.DataBytes }

// Steps returns the durations of starting the guest.
func (g *Guest) Steps() Steps {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.steps
}

// Go lets the guest run its first instruction. Call it once, when run.started is durable.
func (g *Guest) Go() error {
	g.mu.Lock()
	if g.started {
		g.mu.Unlock()
		return fmt.Errorf("%w: the guest runs already", ErrNoCall)
	}
	g.started = true
	g.waiting, g.waitingID = 0, 0
	g.mu.Unlock()
	return g.write(abi.WireHeader{ID: g.readyID, Call: abi.CallReady}, nil)
}

// Calls delivers the guest's calls in order. It is closed when the worker is gone, after
// delivering everything that an orderly worker sent. A reader that stops early must kill
// the guest.
func (g *Guest) Calls() <-chan Inbound { return g.calls }

// Reply answers the call with this id. payload is the reply, or the error text of a failed
// call, and is not kept. It waits while the guest is suspended. It returns ErrNoCall if no
// such call waits, and ErrGone if the worker has ended, or was killed because it did not
// read for 5 s.
func (g *Guest) Reply(id uint32, errno abi.Errno, payload []byte) error {
	return g.ReplyAt(id, errno, payload, 0)
}

// ReplyAt is Reply that also sends the time, in milliseconds since 1970, to a guest with a
// fixed clock (abi.Fixed); 0 sends none.
func (g *Guest) ReplyAt(id uint32, errno abi.Errno, payload []byte, at uint64) error {
	if err := g.awaitResume(); err != nil {
		return err
	}
	g.mu.Lock()
	call := g.waiting
	if call == 0 || g.waitingID != id || !g.started {
		g.mu.Unlock()
		return fmt.Errorf("reply to call %d: %w", id, ErrNoCall)
	}
	most, ok := g.channel.limits.FromHost(call)
	if errno != abi.OK {
		most = max(most, abi.MaxErrorText)
	}
	if !ok || len(payload) > int(most) {
		g.mu.Unlock()
		return fmt.Errorf("reply to %d of %d bytes: at most %d", call, len(payload), most)
	}
	g.waiting, g.waitingID = 0, 0
	g.mu.Unlock()
	return g.writeAt(abi.WireHeader{ID: id, Call: call, Errno: errno}, payload, at)
}

// Credit returns emit credit for frames and bytes that were processed. It is sent at once
// if the guest has little left, otherwise with the next message. It waits while the guest
// is suspended.
func (g *Guest) Credit(frames, bytes int) error {
	if err := g.awaitResume(); err != nil {
		return err
	}
	g.mu.Lock()
	g.frames += int64(frames)
	g.bytes += int64(bytes)
	over := g.frames > abi.CreditFrames || g.bytes > abi.CreditBytes || frames < 0 || bytes < 0
	g.mu.Unlock()
	if over {
		return fmt.Errorf("credit of %d frames and %d bytes: more than was used", frames, bytes)
	}
	all, now := g.channel.addCredit(abi.Credit{Frames: uint32(frames), Bytes: uint32(bytes)})
	if !now {
		return nil
	}
	return g.write(abi.WireHeader{Call: abi.CallCredit}, all.Append(nil))
}

// EndEmit makes every later emit of the guest fail with errno, without being sent:
// ECANCELED when the run is being cancelled, EPROTO after a violation (then all other calls
// fail too). An emit that waits for credit returns at once. Frames already sent still
// arrive.
func (g *Guest) EndEmit(errno abi.Errno) error {
	if err := g.awaitResume(); err != nil {
		return err
	}
	return g.write(abi.WireHeader{Call: abi.CallCredit, Errno: errno}, abi.Credit{}.Append(nil))
}

// write sends a message, and kills a worker that does not read it.
func (g *Guest) write(h abi.WireHeader, payload []byte) error { return g.writeAt(h, payload, 0) }

func (g *Guest) writeAt(h abi.WireHeader, payload []byte, at uint64) error {
	if err := g.channel.send(h, payload, at); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			g.fail(fmt.Errorf("%w: it does not read", abi.ErrWire))
		}
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// Kill ends the guest at once. It does not wait: Calls is closed when the worker is gone.
func (g *Guest) Kill() {
	g.mu.Lock()
	first := !g.stopped
	if first {
		g.stopped = true
		close(g.killed)
	}
	g.mu.Unlock()
	g.stop()
}

// stop kills the process if it still runs.
func (g *Guest) stop() { _ = g.process.Kill() }

// Suspend stops the worker until Resume. Reply, Credit and EndEmit block meanwhile.
func (g *Guest) Suspend() error {
	g.mu.Lock()
	if g.resumed == nil {
		g.resumed = make(chan struct{})
	}
	g.mu.Unlock()
	err := g.process.Suspend()
	if errors.Is(err, jail.ErrUnsupported) {
		return nil // replies are withheld anyway
	}
	return err
}

// Resume lets a suspended worker go on.
func (g *Guest) Resume() error {
	err := g.process.Resume()
	if errors.Is(err, jail.ErrUnsupported) {
		err = nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resumed != nil {
		close(g.resumed)
		g.resumed = nil
	}
	return err
}

// awaitResume blocks while the guest is suspended. It returns ErrGone if the worker ends.
func (g *Guest) awaitResume() error {
	g.mu.Lock()
	resumed := g.resumed
	g.mu.Unlock()
	if resumed == nil {
		return nil
	}
	select {
	case <-resumed:
		return nil
	case <-g.process.Done():
		return ErrGone
	}
}
