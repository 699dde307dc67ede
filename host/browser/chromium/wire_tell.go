package chromium

import (
	"context"
	"sync/atomic"

	"github.com/chromedp/cdproto"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// told counts the commands whose answers nobody waits for, above all numbers that
// the library gives.
var told atomic.Int64

const toldFrom = 1 << 30

// tell sends a command and leaves its answer to nobody. A command that is sent after
// it returned comes after it. The library has only calls that wait, and a pointer's
// move is answered a frame late (B25).
func (w *wire) tell(ctx context.Context, session target.SessionID, method string, params any) error {
	buf, err := jsonv2.Marshal(params, chromedp.DefaultMarshalOptions)
	if err != nil {
		return err
	}
	m := &cdproto.Message{ID: toldFrom + told.Add(1)%(toldFrom/2), SessionID: session, Method: cdproto.MethodType(method), Params: buf}
	written := make(chan error, 1)
	go func() { written <- w.Write(ctx, m) }() // which blocks while a stopped browser's pipe is full
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
