package sandbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// pump carries messages from the worker to Calls until the worker is gone, then determines how it ended. A guest that
// is ahead of the reader blocks on its own socket, or for lack of credit.
func (g *Guest) pump() {
	defer close(g.calls)
	err := g.relay()
	if errors.Is(err, abi.ErrWire) {
		g.fail(err)
	}
	g.awaitEnd()
	g.finish()
}

// endGrace is how long a worker may live after its socket was closed.
const endGrace = 2 * time.Second

// fail kills the worker because of its own fault. Only the first reason is kept.
func (g *Guest) fail(reason error) {
	g.mu.Lock()
	if g.fault == nil {
		g.fault = reason
	}
	g.mu.Unlock()
	g.stop()
}

// awaitEnd waits until the worker has ended. It kills the worker only after endGrace, because the way it ends by itself
// tells why.
func (g *Guest) awaitEnd() {
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-g.process.Done():
	case <-timer.C:
		g.fail(fmt.Errorf("%w: it closed its socket and stayed", abi.ErrWire))
	}
}

// relay delivers calls to the reader. It returns nil after an orderly exit.
func (g *Guest) relay() error {
	for {
		h, buf, err := g.channel.next()
		if err != nil {
			return err
		}
		if h.Call == abi.CallExit {
			defer giveBuffer(buf)
			return g.takeExitReport(h.ID, buf.b[:h.Length])
		}
		in := Inbound{ID: h.ID, Call: h.Call, Payload: buf.b[:h.Length], buffer: buf}
		if err := g.countCall(in); err != nil {
			in.Release()
			return err
		}
		g.rate.take(time.Now(), g.killed)
		select {
		case g.calls <- in:
		case <-g.killed:
			in.Release()
			return ErrGone
		}
	}
}

// countCall counts a call, and refuses it if the worker may not send it now.
func (g *Guest) countCall(in Inbound) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hostCalls++
	g.bytesIn += uint64(len(in.Payload))
	switch {
	case in.Call == abi.CallHello, in.Call == abi.CallReady:
		return fmt.Errorf("%w: call %d a second time", abi.ErrWire, in.Call)
	case g.waiting != 0:
		return fmt.Errorf("%w: call %d while %d waits for its reply", abi.ErrWire, in.Call, g.waiting)
	case in.Call.Pipelined():
		g.frames--
		g.bytes -= int64(len(in.Payload))
		if g.frames < 0 || g.bytes < 0 {
			return fmt.Errorf("%w: emit beyond credit", abi.ErrWire)
		}
		return nil
	}
	if err := wellFormed(in); err != nil {
		return err
	}
	g.waiting, g.waitingID = in.Call, in.ID
	return nil
}

// wellFormed checks the payloads that the worker itself builds. The others come from the guest and are checked by
// whoever answers the call.
func wellFormed(in Inbound) (err error) {
	switch in.Call {
	case abi.CallRead:
		_, _, err = abi.ParseRead(in.Payload)
	case abi.CallClose:
		_, err = abi.ParseClose(in.Payload)
	case abi.CallStdin:
		_, err = abi.ParseStdin(in.Payload)
	case abi.CallSleep:
		_, err = abi.ParseSleep(in.Payload)
	case abi.CallDiag:
		_, _, err = abi.ParseDiag(in.Payload)
	case abi.CallFault:
		_, err = abi.ParseRequestFault(in.Payload)
	}
	return err
}

// takeExitReport takes the worker's exit message, which must be its last.
func (g *Guest) takeExitReport(id uint32, payload []byte) error {
	e, err := abi.ParseExit(payload)
	if err != nil {
		return err
	}
	_, peak, _ := g.process.Memory() // an error means that it is gone; earlier samples count
	g.mu.Lock()
	g.peak = max(g.peak, peak)
	if waiting := g.waiting; waiting != 0 {
		g.mu.Unlock()
		return fmt.Errorf("%w: exit while call %d waits for its reply", abi.ErrWire, waiting)
	}
	g.exitReport = &e
	g.steps.Instantiate = e.Instantiate
	g.mu.Unlock()
	if err := g.write(abi.WireHeader{ID: id, Call: abi.CallExit}, nil); err != nil {
		return err
	}
	_ = g.process.Socket.SetReadDeadline(time.Now().Add(endGrace)) // a closed socket fails the read
	_, buf, err := g.channel.next()
	if err == nil {
		giveBuffer(buf)
		return fmt.Errorf("%w: a message after exit", abi.ErrWire)
	}
	if errors.Is(err, abi.ErrWire) {
		return err
	}
	return nil
}

// A bucket is a token bucket that slows down a guest that calls too often.
type bucket struct {
	rate, burst float64
	level       float64
	at          time.Time
}

func newBucket(rate, burst int) bucket {
	return bucket{rate: float64(rate), burst: float64(burst), level: float64(burst), at: time.Now()}
}

// take waits until one more call is allowed, or stop is closed.
func (b *bucket) take(now time.Time, stop <-chan struct{}) {
	b.level = min(b.burst, b.level+now.Sub(b.at).Seconds()*b.rate) - 1
	b.at = now
	if b.level >= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(-b.level / b.rate * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	}
}
