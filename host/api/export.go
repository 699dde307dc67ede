package api

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// The formats of an export.
const (
	ndjson  = "application/x-ndjson"
	csvType = "text/csv"
)

// maxExports bounds concurrent exports, since each pins a commit; maxExportsOfAKey bounds those of
// one key.
const (
	maxExports       = 8
	maxExportsOfAKey = 4
)

// exportRecords streams the records of one commit. The audit log has it before the first byte is
// sent, since an interrupted export has given data away too.
func (a *recordAPI) exportRecords(c *fiber.Ctx) (err error) {
	s, err := a.recordStream(c)
	if err != nil {
		return err
	}
	format := web.QueryOf(c)
	x := &exportJob{csv: format.OneOf("format", "ndjson", "ndjson", "csv") == "csv", recheck: web.Recheck(c)}
	if err := format.Err(); err != nil {
		return err
	}
	q, err := readQuery(c, s)
	if err != nil {
		return err
	}
	leave, err := a.places.acquire(web.Principal(c).ID)
	if err != nil {
		return err
	}
	x.close = leave
	defer func() {
		if err != nil {
			x.close()
		}
	}()
	if x.view, err = a.records.View(web.Context(c)); err != nil {
		return err
	}
	x.close = func() { x.view.Close(); leave() }
	x.selection = export.Selection{Connection: s.connection, Streams: []export.From{{Stream: s.name, After: q.since}},
		Deleted: q.deleted,
		Match:   q.matchAll(), Order: q.order, Descending: q.descending, Keep: q.keep, Manifest: s.manifest}
	newest, err := x.view.Records(web.Context(c), store.RecordQuery{Connection: s.connection, Stream: s.name,
		After: q.since, Deleted: true, Limit: 1})
	if err != nil {
		return err
	}
	if x.csv {
		var records int64
		if x.columns, records, err = x.selection.Columns(web.PollContext(c), x.view); errors.Is(err, export.ErrColumns) {
			return web.Invalid(web.Field{Path: "query.format",
				Rule: "ndjson: the records have too many different fields for CSV"})
		}
		if err != nil {
			return err
		}
		c.Set("Sluice-Export-Records", strconv.FormatInt(records, 10))
	}
	version := strconv.FormatUint(newest.Version, 10)
	err = a.audit.Audit(web.Context(c), "records.exported", string(s.connection), "done",
		map[string]string{"stream": string(s.name), "version": version})
	if err != nil {
		return err
	}
	contentType, ending := ndjson, ".ndjson"
	if x.csv {
		contentType, ending = csvType+"; charset=utf-8", ".csv"
	}
	web.Attachment(c, contentType, export.FileName(string(s.connection)+"-"+string(s.name))+ending)
	c.Set("Sluice-Export-Version", version)
	id := web.RequestID(c)
	return web.Stream(c, contentType, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
		defer x.close()
		if err := x.write(ctx, &pacedWriter{w: w, conn: conn}); err != nil {
			// Without the last chunk the client sees that the export is incomplete.
			_ = conn.Close()
			if ctx.Err() == nil {
				a.log.Warn("export_broken_off", slog.String("request", id), slog.String("error", err.Error()))
			}
		}
	})
}

// exportSlots counts running exports.
type exportSlots struct {
	mu          sync.Mutex // guards all below
	all         int
	byPrincipal map[string]int // by principal
}

// acquire takes a place for a principal; leave gives it back.
func (e *exportSlots) acquire(who string) (leave func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	scope, limit := "", 0
	switch {
	case e.byPrincipal[who] >= maxExportsOfAKey:
		scope, limit = "key", maxExportsOfAKey
	case e.all >= maxExports:
		scope, limit = "global", maxExports
	}
	if scope != "" {
		p := web.NewProblem(0, "rate_limited", "Too many exports are being made. Wait and repeat.").
			With("scope", scope).With("limit", limit).With("retryAfterMs", 1000)
		p.RetryAfter = time.Second
		return nil, p
	}
	if e.byPrincipal == nil {
		e.byPrincipal = map[string]int{}
	}
	e.all, e.byPrincipal[who] = e.all+1, e.byPrincipal[who]+1
	return func() { e.release(who) }, nil
}

func (e *exportSlots) release(who string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all--
	if e.byPrincipal[who]--; e.byPrincipal[who] == 0 {
		delete(e.byPrincipal, who)
	}
}

// exportJob is a running export. It holds only copies, since the request's buffers are reused.
type exportJob struct {
	csv       bool
	columns   []string
	selection export.Selection
	view      store.View
	recheck   func(context.Context) error
	close     func()
}

// recheckEvery is how often an export checks whether its principal may still read.
const recheckEvery = 15 * time.Second

func (x *exportJob) write(ctx context.Context, to io.Writer) error {
	src := &recheckingSource{Source: x.view, check: x.recheck, next: time.Now().Add(recheckEvery)}
	if x.csv {
		w := bufio.NewWriterSize(to, 64<<10)
		if _, err := x.selection.WriteCSV(ctx, w, src, x.columns); err != nil {
			return err
		}
		return w.Flush()
	}
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 64<<10)
	records, err := x.selection.WriteNDJSON(ctx, w, src)
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	end, err := json.Marshal(export.End{End: true, Records: records,
		Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil))})
	if err != nil {
		return err
	}
	_, err = to.Write(append(end, '\n'))
	return err
}

// recheckingSource is a source that fails once its reader may no longer read.
type recheckingSource struct {
	export.Source
	check func(context.Context) error
	next  time.Time
}

func (s *recheckingSource) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if now := time.Now(); now.After(s.next) {
		if err := s.check(ctx); err != nil {
			return store.RecordPage{}, fmt.Errorf("check reader: %w", err)
		}
		s.next = now.Add(recheckEvery)
	}
	return s.Source.Records(ctx, q)
}

// How long a reader may keep an export waiting: a minute, plus a second for every 16 KiB read. An
// export holds a commit and one of few places.
const (
	stallTimeout       = time.Minute
	minBytesPerTimeout = 16 << 10
)

var errSlow = errors.New("the reader takes less than 16 KiB a second")

// pacedWriter sets a write deadline for every piece, and fails if the reader takes less than minBytesPerTimeout
// bytes a second after the first minute.
type pacedWriter struct {
	w      *bufio.Writer
	conn   net.Conn
	waited time.Duration
	taken  int64
}

func (p *pacedWriter) Write(b []byte) (int, error) {
	began := time.Now()
	if err := p.conn.SetWriteDeadline(began.Add(web.WriteDeadline)); err != nil {
		return 0, err
	}
	n, err := p.w.Write(b)
	if err == nil {
		err = web.Flush(p.w, p.conn)
	}
	p.waited, p.taken = p.waited+time.Since(began), p.taken+int64(n)
	if err == nil && p.waited > stallTimeout+time.Duration(p.taken/minBytesPerTimeout)*time.Second {
		err = errSlow
	}
	return n, err
}
