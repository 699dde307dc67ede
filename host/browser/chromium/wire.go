package chromium

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// A wire is the connection to a browser: the two pipes that it inherits, and a count of the
// messages that the library does not know.
type wire struct {
	*chromedp.PipeConn
	files       []*os.File // the browser's ends, until it has started
	undecodable atomic.Int64

	mu    sync.Mutex // guards known
	known map[cdproto.MethodType]bool
}

// newWire passes the browser's ends to the command as descriptors 3 and 4.
func newWire(cmd *exec.Cmd) (*wire, error) {
	commandsR, commandsW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answersR, answersW, err := os.Pipe()
	if err != nil {
		_, _ = commandsR.Close(), commandsW.Close()
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{commandsR, answersW}
	return &wire{
		PipeConn: chromedp.NewPipeConn(&bounded{ReadCloser: answersR}, commandsW),
		files:    cmd.ExtraFiles,
		known:    map[cdproto.MethodType]bool{},
	}, nil
}

// handed closes the browser's ends in this process.
func (w *wire) handed() {
	for _, f := range w.files {
		_ = f.Close()
	}
	w.files = nil
}

// Read reads a message and counts unknown events.
func (w *wire) Read(ctx context.Context, m *cdproto.Message) error {
	err := w.PipeConn.Read(ctx, m)
	if err == nil && m.Method != "" && !w.knownEvent(m) {
		w.undecodable.Add(1)
	}
	return err
}

// superseded are events that browsers still send beside their successors and that the library no
// longer has.
var superseded = map[cdproto.MethodType]bool{
	// replaced by Page.frameRequestedNavigation
	"Page.frameScheduledNavigation": true, "Page.frameClearedScheduledNavigation": true,
	"Page.downloadWillBegin": true, "Page.downloadProgress": true, // replaced by events of the Browser domain
}

// knownEvent reports whether the library knows an event, or has dropped it on purpose. Events that
// it knows and cannot decode are counted in complain.
func (w *wire) knownEvent(m *cdproto.Message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, seen := w.known[m.Method]
	if !seen && len(w.known) < 4096 {
		_, err := cdproto.UnmarshalMessage(&cdproto.Message{Method: m.Method, Params: []byte("{}")},
			chromedp.DefaultUnmarshalOptions)
		known = err == nil || superseded[m.Method]
		w.known[m.Method] = known
	}
	return known
}

// complain receives the library's error messages.
func (w *wire) complain(format string, args ...any) {
	if strings.Contains(format, "could not unmarshal event") {
		w.undecodable.Add(1)
	}
}

// quit asks the browser to end by itself. The library reserves this command for its own way of
// closing, which can hang. Nobody waits for the answer.
func (w *wire) quit(ctx context.Context) error {
	return w.Write(ctx, &cdproto.Message{ID: math.MaxInt32, Method: browser.CommandClose, Params: []byte("{}")})
}

// messageBytes bounds a message; pictures of 25 Mpx fit.
const messageBytes = 128 << 20

var errMessage = errors.New("the browser sent a message that is too long")

// bounded fails on a message that is too long in a stream of zero-terminated messages.
type bounded struct {
	io.ReadCloser
	since int // bytes since the last zero byte
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if i := bytes.LastIndexByte(p[:n], 0); i >= 0 {
		b.since = n - i - 1
	} else {
		b.since += n
	}
	if b.since > messageBytes {
		return 0, errMessage
	}
	return n, err
}

// attached connects the library to a browser that it did not start, so that all tabs are equal and
// none takes the browser with it.
type attached struct{ wire *wire }

// Attaches implements [chromedp.Attacher].
func (attached) Attaches() bool { return true }

// Allocate implements [chromedp.Allocator].
func (a attached) Allocate(ctx context.Context, opts ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	return chromedp.NewBrowserTransport(ctx, a.wire, opts...)
}

// Wait implements [chromedp.Allocator]. There is nothing to wait for.
func (attached) Wait() {}

// told numbers the commands whose answers nobody waits for, above all numbers that the library
// uses.
var told atomic.Int64

const toldFrom = 1 << 30

// tell sends a command without waiting for its answer. Commands sent after it returns arrive after
// it. The library only has calls that wait, and a pointer movement is answered a frame late.
func (w *wire) tell(ctx context.Context, session target.SessionID, method string, params any) error {
	buf, err := jsonv2.Marshal(params, chromedp.DefaultMarshalOptions)
	if err != nil {
		return err
	}
	m := &cdproto.Message{ID: toldFrom + told.Add(1)%(toldFrom/2), SessionID: session,
		Method: cdproto.MethodType(method), Params: buf}
	written := make(chan error, 1)
	go func() { written <- w.Write(ctx, m) }() // blocks while a stopped browser's pipe is full
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
