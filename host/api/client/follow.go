package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A Frame is one frame of an event stream.
type Frame struct {
	ID    string // sequence, decimal; "" for none
	Event string
	Data  []byte // the caller's
}

// maxFrame bounds a frame: a snapshot is the largest.
const maxFrame = 16 << 20

// Times of a stream. The host sends at least a comment every 15 s.
const (
	silence   = 45 * time.Second
	retryWait = time.Second
	retries   = 30 // before giving up on a host that is gone
)

// Follow calls do with each frame of a run's event stream until the run is over, and
// resumes after a broken connection. mode is a streamMode, "" for updates; after is the
// sequence to start after, nil for all. An error of do ends it and is returned.
func (c eventClient) Follow(ctx context.Context, id store.RunID, mode string, after *uint64,
	do func(Frame) error) error {
	f := follower{c: c.transport, run: id, mode: mode, do: do}
	if after != nil {
		f.last = fmt.Sprint(*after)
	}
	for failed := 0; ; {
		over, err := f.over(ctx, failed > 0)
		if err == nil {
			err = f.connect(ctx)
		}
		var refused *Error
		switch {
		case f.ended, err == nil && over:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.failed != nil:
			return f.failed
		case errors.Is(err, errFrame), errors.As(err, &refused) && refused.Status < http.StatusBadGateway:
			return err
		case f.took:
			failed = 0
		}
		if f.took = false; failed == retries {
			return err
		}
		failed++
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(c.wait):
		}
	}
}

// A follower is the state of one call of Follow.
type follower struct {
	c      *transport
	run    store.RunID
	mode   string
	do     func(Frame) error
	last   string // id of the newest frame
	took   bool   // a frame came over this connection
	ended  bool   // the terminal frame came
	failed error  // from do
}

// over reports, before reconnecting, whether the run is over; the next stream then
// brings everything that is left.
func (f *follower) over(ctx context.Context, again bool) (bool, error) {
	if !again {
		return false, nil
	}
	s, err := runClient{f.c}.Run(ctx, f.run)
	return err == nil && s.Status.Terminal(), err
}

// connect reads one connection to its end. The error is nil if the host ended it.
func (f *follower) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	header, q := http.Header{"Accept": {"text/event-stream"}}, url.Values{}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
	}
	if f.mode != "" {
		q.Set("streamMode", f.mode)
	}
	res, err := f.c.send(ctx, http.MethodGet, at("runs", string(f.run), "events"), q, header, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errorOf(res)
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	return f.read(bufio.NewReaderSize(res.Body, 64<<10), func() { quiet.Reset(silence) })
}

// read calls do with the frames of a stream, and heard for every line.
func (f *follower) read(r *bufio.Reader, heard func()) error {
	var frame Frame
	for {
		line, err := readLine(r, maxFrame)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		heard()
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if frame.Data == nil {
				break
			}
			if f.failed = f.do(frame); f.failed != nil {
				return f.failed
			}
			if f.took = true; frame.ID != "" {
				f.last = frame.ID
			}
			if f.ended = terminal(frame); f.ended {
				return nil
			}
			frame = Frame{}
		case string(name) == "id":
			frame.ID = string(value)
		case string(name) == "event":
			frame.Event = string(value)
		case string(name) == "data":
			if len(frame.Data)+len(value) > maxFrame {
				return errFrame
			}
			if frame.Data != nil {
				frame.Data = append(frame.Data, '\n')
			}
			frame.Data = append(frame.Data, value...)
		}
	}
}

// terminal reports whether a frame is the last of its stream.
func terminal(f Frame) bool {
	switch f.Event {
	case string(timeline.RunCompleted), string(timeline.RunFailed), string(timeline.RunCancelled):
		return true
	case "state.snapshot":
		var s struct {
			Status timeline.Status `json:"status"`
		}
		return json.Unmarshal(f.Data, &s) == nil && s.Status.Terminal()
	}
	return false
}

var errFrame = fmt.Errorf("a frame of the stream is larger than %d bytes", maxFrame)

// readLine reads a line of at most most bytes, without its end.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return nil, errFrame
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
