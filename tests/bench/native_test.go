//go:build unix

package bench

import (
	"context"
	"encoding/binary"
	"io"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// native ingests n records of the native program.
func native(b *testing.B, h *app.Host, n int) (time.Duration, *run.Result) {
	b.Helper()
	program, err := build.Native("tests/bench/jsonl")
	if err != nil {
		b.Fatal(err)
	}
	l := loaded(b, h, "ingest") // for its manifest
	plan, err := run.Prepare(context.Background(), h.Store, run.Input{
		Connector: l.Connector, Connection: store.Connection{ID: "native", ConnectorID: l.Connector.ID, Enabled: true},
		Manifest: l.Manifest, Transport: "stdio", Trigger: "manual", Attempt: 1, Limits: abi.DefaultLimits(),
		Budgets: run.DefaultBudgets(),
	})
	if err != nil {
		b.Fatal(err)
	}
	r := run.New(plan, run.Deps{
		Store: h.Store, HostID: h.ID, BootEpoch: h.Epoch,
		Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) {
			g, err := newProgramGuest(exec.Command(program, strconv.Itoa(n), "0"))
			return g, nil, err
		},
	})
	return finish(b, r, int64(n))
}

// programGuest makes a native program look like a stdio guest: it is what
// Sluice would be without a jail.
type programGuest struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	calls   chan sandbox.Inbound
	replies chan []byte
	code    uint32
}

func newProgramGuest(cmd *exec.Cmd) (*programGuest, error) {
	g := &programGuest{cmd: cmd, calls: make(chan sandbox.Inbound), replies: make(chan []byte, 1)}
	var err error
	if g.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if g.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return g, cmd.Start()
}

func (g *programGuest) Go() error {
	go g.relay()
	return nil
}

// relay hands START over, then chunks of output, each answered before the next.
func (g *programGuest) relay() {
	defer close(g.calls)
	room := binary.LittleEndian.AppendUint32(nil, abi.MaxReadChunk)
	g.calls <- sandbox.Inbound{ID: 1, Call: abi.CallStdin, Payload: room}
	_, _ = g.in.Write(<-g.replies)
	buf := make([]byte, abi.MaxStdoutChunk)
	for id := uint32(2); ; id++ {
		n, err := g.out.Read(buf)
		if n > 0 {
			g.calls <- sandbox.Inbound{ID: id, Call: abi.CallStdout, Payload: buf[:n]}
			<-g.replies
		}
		if err != nil {
			break
		}
	}
	if g.cmd.Wait() != nil {
		g.code = 1
	}
}

func (g *programGuest) Calls() <-chan sandbox.Inbound { return g.calls }
func (g *programGuest) Reply(_ uint32, _ abi.Errno, payload []byte) error {
	g.replies <- append([]byte(nil), payload...)
	return nil
}
func (g *programGuest) Credit(int, int) error { return nil }
func (g *programGuest) Kill()                 { _ = g.cmd.Process.Kill() }
func (g *programGuest) Usage() sandbox.Usage  { return sandbox.Usage{} }
func (g *programGuest) Exit() sandbox.Exit {
	s := g.cmd.ProcessState // complete, for the calls have ended
	return sandbox.Exit{Kind: sandbox.ExitExited, Code: g.code, Usage: sandbox.Usage{CPU: s.UserTime() + s.SystemTime()}}
}
func (g *programGuest) Isolation() sandbox.Isolation { return sandbox.Isolation{} }
