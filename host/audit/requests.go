package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"sync"
	"time"
)

const (
	requestsDir      = "requests"
	requestsRoll     = 16 << 20
	requestsKeep     = 8
	maxOrigin        = 300
	maxPath          = 256
	requestsBuffered = 64 << 10
)

// A Request is a hop of a connector's request, whether it was made or refused.
type Request struct {
	At         Time   `json:"at"`
	Run        string `json:"run_id"`
	Connection string `json:"connection_id"`
	Method     string `json:"method"`
	Origin     string `json:"origin"`
	Path       string `json:"path"`
	Status     int    `json:"status"`            // 0 without an answer
	Refused    string `json:"refused,omitempty"` // code of the error
	Sent       int64  `json:"sent"`              // bytes
	Received   int64  `json:"received"`
	Millis     int64  `json:"duration_ms"`      // until the answer began
	Family     string `json:"family,omitempty"` // ipv4 or ipv6; "" without a connection
}

func (r Request) cleaned() Request {
	r.Run, r.Connection, r.Method = short(r.Run, maxShort), short(r.Connection, maxShort), short(r.Method, maxShort)
	r.Origin, r.Path = short(r.Origin, maxOrigin), short(r.Path, maxPath)
	r.Refused, r.Family = short(r.Refused, maxShort), short(r.Family, maxShort)
	return r
}

// Requests is the request log of a data directory: eight files of 16 MiB, of which the oldest is
// deleted. It is for the process that has the store, and safe for concurrent use there. Lines are
// buffered until Flush; a process that is killed loses up to a second of lines.
type Requests struct {
	data string
	roll int64

	mu      sync.Mutex // guards what follows
	d       *directory // nil before the first line
	f       *os.File
	w       *bufio.Writer
	size    int64
	flushed time.Time
}

// OpenRequests returns the request log of a data directory. Nothing is created before the first
// line.
func OpenRequests(dataDir string) *Requests { return &Requests{data: dataDir, roll: requestsRoll} }

// Add writes a line.
func (q *Requests) Add(r Request) error {
	r.At.Time = r.At.UTC().Truncate(time.Millisecond)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r.cleaned()); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ready(); err != nil {
		return fmt.Errorf("write request log: %w", err)
	}
	n, err := q.w.Write(b.Bytes())
	q.size += int64(n)
	if now := time.Now(); err == nil && now.Sub(q.flushed) > time.Second {
		q.flushed, err = now, q.w.Flush()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write request log: %w", err), q.drop())
	}
	return nil
}

// ready opens the newest file, or the next one if that is full.
func (q *Requests) ready() (err error) {
	if q.w != nil && q.size < q.roll {
		return nil
	}
	if err := q.drop(); err != nil {
		return err
	}
	if q.d == nil {
		if q.d, err = makeDirectory(q.data, logDir, requestsDir); err != nil {
			return err
		}
	}
	names, err := q.d.files()
	if err != nil {
		return err
	}
	if err := q.openNewest(names); err != nil {
		return err
	}
	q.w, q.flushed = bufio.NewWriterSize(q.f, requestsBuffered), time.Now()
	return nil
}

func (q *Requests) openNewest(names []string) error {
	if len(names) > 0 {
		f, size, err := q.d.open(names[len(names)-1], os.O_RDWR|os.O_APPEND)
		if err != nil {
			return err
		}
		if size < q.roll {
			q.f, q.size = f, size
			return q.endLine()
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	name, err := after(names)
	if err != nil {
		return err
	}
	if q.f, err = q.d.create(name); err != nil {
		return err
	}
	q.size = 0
	for ; len(names) >= requestsKeep; names = names[1:] {
		if err := q.d.root.Remove(names[0]); err != nil {
			return err
		}
	}
	return nil
}

// endLine completes a line that a killed process left unfinished.
func (q *Requests) endLine() error {
	var b [1]byte
	if q.size == 0 {
		return nil
	}
	if _, err := q.f.ReadAt(b[:], q.size-1); err != nil || b[0] == '\n' {
		return err
	}
	_, err := q.f.Write([]byte{'\n'})
	q.size++
	return err
}

// drop closes the file. The next line opens it again.
func (q *Requests) drop() error {
	if q.f == nil {
		return nil
	}
	var err error
	if q.w != nil {
		err = q.w.Flush()
	}
	err = errors.Join(err, q.f.Close())
	q.f, q.w = nil, nil
	return err
}

// Flush passes all lines to the operating system.
func (q *Requests) Flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.w == nil {
		return nil
	}
	return q.w.Flush()
}

// Close flushes and closes the log. A later Add opens it again.
func (q *Requests) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.drop()
	if q.d != nil {
		err = errors.Join(err, q.d.Close())
		q.d = nil
	}
	return err
}

// All yields the remaining lines, oldest first, of one run, or of all for "". Invalid lines are
// skipped.
func (q *Requests) All(ctx context.Context, run string) iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		d, err := openDirectory(q.data, logDir, requestsDir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Request{}, err)
			return
		}
		defer d.Close()
		err = d.scan(func(n line) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var r Request
			if n.torn || json.Unmarshal(n.text, &r) != nil || run != "" && r.Run != run {
				return nil
			}
			if !yield(r.cleaned(), nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Request{}, err)
		}
	}
}
