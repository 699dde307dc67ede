package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// fileAPI has the routes of files in records. Everything about a file was chosen by a connector and
// its servers, so it is sent as an attachment that no page may run, whatever its type.
type fileAPI struct {
	find  lookup
	files host.Files
	log   *slog.Logger
}

func (a *fileAPI) routes() []route {
	of := "/v1/connections/:connectionId/files"
	return documented("api.md#files", []route{
		{Route: web.Route{Method: "GET", Path: of, Scope: access.RecordsRead, Handle: a.list},
			summary: "The files that records of a connection hold", answer: web.List[host.File]{},
			query: append([]parameter{
				{name: "stream", typ: "string", text: "Only those of one stream."},
				{name: "key", typ: "string", text: "Only those of one record of it; a compound key as its JSON array."},
			}, paging...), codes: []string{"invalid_cursor", "cursor_expired"}},
		{Route: web.Route{Method: "GET", Path: of + "/:digest", Scope: access.RecordsRead, Handle: a.content},
			summary: "A file by the digits of its digest, or a range of it, as an attachment", media: "*/*",
			also: []int{206, 304}, query: []parameter{{name: "view", typ: "boolean",
				text: "A picture or a PDF comes as one that a page may show, in a sandbox without scripts."}},
			codes: []string{"range_not_satisfiable"}},
	})
}

func (a *fileAPI) list(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, recordsPage, recordsMost)
	if err != nil {
		return err
	}
	args := c.Context().QueryArgs()
	q := store.FileQuery{Connection: id, Stream: store.Stream(args.Peek("stream")), Key: string(args.Peek("key")),
		After: page.After, Limit: page.Limit}
	if q.Key != "" && q.Stream == "" {
		return host.Invalid("key", "stream_missing", "want a stream with it")
	}
	found, err := a.files.Files(web.Context(c), q)
	if err != nil {
		return err
	}
	var out []host.File
	for _, f := range found.Files {
		out = append(out, host.FileOf(id, f))
	}
	if !found.More {
		found.After = ""
	}
	return web.Listed(c, out, found.After)
}

// content streams a file or the requested range of it.
func (a *fileAPI) content(c *fiber.Ctx) (err error) {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	text, err := web.ID(c, "digest")
	if err != nil {
		return err
	}
	d, err := store.ParseDigest("sha256:" + text)
	if err != nil {
		return web.NotFound()
	}
	content, info, err := a.files.OpenFile(web.Context(c), id, d)
	if err != nil {
		return err
	}
	streaming := false
	defer func() {
		if !streaming {
			_ = content.Close() // read only
		}
	}()
	etag := `"` + string(d) + `"`
	c.Set(fiber.HeaderETag, etag)
	c.Set(fiber.HeaderAcceptRanges, "bytes")
	if strings.Contains(c.Get(fiber.HeaderIfNoneMatch), etag) {
		return c.SendStatus(fiber.StatusNotModified)
	}
	asked := c.Get(fiber.HeaderRange)
	if r := c.Get(fiber.HeaderIfRange); r != "" && r != etag {
		asked = ""
	}
	fileHeaders(c, info)
	from, n, ok := rangeOf(asked, content.Size())
	if !ok {
		c.Set(fiber.HeaderContentRange, fmt.Sprintf("bytes */%d", content.Size()))
		return web.NewProblem(0, "range_not_satisfiable", "The file has %d bytes.", content.Size())
	}
	if n < 0 {
		n = content.Size()
	} else {
		c.Status(fiber.StatusPartialContent)
		c.Set(fiber.HeaderContentRange, fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, content.Size()))
	}
	if c.QueryBool("view") {
		if info.MediaType, err = viewed(c, content, info); err != nil {
			return err
		}
	}
	if _, err := content.Seek(from, io.SeekStart); err != nil {
		return err
	}
	streaming = true
	return a.stream(c, content, info.MediaType, n)
}

func (a *fileAPI) stream(c *fiber.Ctx, content io.ReadCloser, mediaType string, n int64) error {
	id, recheck := web.RequestID(c), web.Recheck(c)
	err := web.Stream(c, mediaType, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
		defer content.Close()
		from := &recheckingReader{Reader: content, ctx: ctx, check: recheck, next: time.Now().Add(recheckEvery)}
		if _, err := io.CopyN(&pacedWriter{w: w, conn: conn}, from, n); err != nil {
			// Without the last chunk the client sees that the content is incomplete.
			_ = conn.Close()
			if ctx.Err() == nil {
				a.log.Warn("file_broken_off", slog.String("request", id), slog.String("error", err.Error()))
			}
		}
	})
	if err != nil {
		_ = content.Close() // never streamed
	}
	return err
}

// viewed lets a page show a picture or a PDF, in a sandbox without scripts. Anything else stays an
// attachment of a type that browsers do not interpret.
func viewed(c *fiber.Ctx, content io.Reader, f store.File) (mediaType string, err error) {
	mediaType, err = web.Viewable(content, f.Size)
	if err != nil {
		return "", err
	}
	if mediaType == "" {
		return "application/octet-stream", nil
	}
	attachment := string(c.Response().Header.Peek(fiber.HeaderContentDisposition))
	c.Set(fiber.HeaderContentDisposition, "inline"+strings.TrimPrefix(attachment, "attachment"))
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox; frame-ancestors 'self'")
	return mediaType, nil
}

// fileHeaders describe the file and make browsers save it.
func fileHeaders(c *fiber.Ctx, f store.File) {
	name := f.Name
	if name == "" {
		name = strings.TrimPrefix(string(f.Digest), "sha256:")
	}
	web.Attachment(c, f.MediaType, export.FileName(name))
	c.Set(fiber.HeaderContentDisposition,
		fmt.Sprintf("attachment; filename=%q; filename*=UTF-8''%s", export.FileName(name), url.PathEscape(name)))
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
}

// rangeOf parses a Range header with one range of bytes; n is -1 for any other header. ok is false
// if the range lies outside the file.
func rangeOf(header string, size int64) (from, n int64, ok bool) {
	spec, found := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	if !found || !dash || strings.Contains(spec, ",") || size == 0 {
		return 0, -1, true
	}
	a, errA := strconv.ParseUint(first, 10, 62)
	b, errB := strconv.ParseUint(last, 10, 62)
	switch {
	case first == "" && errB == nil:
		n = min(int64(b), size)
		return size - n, n, n > 0
	case errA != nil || last != "" && (errB != nil || b < a):
		return 0, -1, true
	case int64(a) >= size:
		return 0, 0, false
	case last == "":
		return int64(a), size - int64(a), true
	}
	return int64(a), min(int64(b), size-1) - int64(a) + 1, true
}
