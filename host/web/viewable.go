package web

import (
	"bytes"
	"compress/zlib"
	"errors"
	"image"
	_ "image/gif"  // formats that are shown
	_ "image/jpeg" // as above
	_ "image/png"  // as above
	"io"
	"regexp"
	"sync"
)

// Limits of files shown in pages: bytes and pixels of a picture, and bytes of a PDF, compressed and
// uncompressed.
const (
	maxPicture  = 64 << 20
	pictureHead = 256 << 10
	maxPixels   = 50_000_000
	maxEdge     = 30_000
	maxPDF      = 16 << 20
	maxUnpacked = 64 << 20
)

// Viewable returns the media type as which a browser may show content of size bytes: a picture of
// bounded dimensions or a PDF without active content, detected from the content and not from its
// name. It returns "" for all others, which are downloaded. It reads from the current position.
func Viewable(content io.Reader, size int64) (string, error) {
	head, err := io.ReadAll(io.LimitReader(content, min(size, pictureHead)))
	if err != nil || size > maxPicture {
		return "", err
	}
	if bytes.HasPrefix(head, []byte("%PDF-")) {
		if size > maxPDF {
			return "", nil
		}
		rest, err := io.ReadAll(io.LimitReader(content, maxPDF))
		if err != nil || !isPassive(append(head, rest...)) {
			return "", err
		}
		return "application/pdf", nil
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(head))
	if err != nil || c.Width < 1 || c.Height < 1 || c.Width > maxEdge || c.Height > maxEdge ||
		c.Width*c.Height > maxPixels {
		return "", nil
	}
	return "image/" + format, nil
}

var (
	// active matches names of what runs, opens other files or sends something.
	active = lazily(
		`/(JS|JavaScript|XFA|AcroForm|Launch|SubmitForm|ImportData|GoToR|GoToE|RichMedia|Rendition|Movie|EmbeddedFiles?)[\x00\t\n\f\r ()<>\[\]/{}%]`)
	// disguised matches names with escapes, which are never needed.
	disguised = lazily(`/[A-Za-z]*#[0-9A-Fa-f]{2}`)
	objects   = lazily(`/ObjStm\b`)
	deflated  = lazily(`/Filter\s*(/FlateDecode|\[\s*/FlateDecode\s*\])`)
)

// isPassive reports whether a PDF has no active content, so that no viewer has to be trusted with it.
// Content that cannot be examined does not count as passive.
func isPassive(pdf []byte) bool {
	if active().Match(pdf) || disguised().Match(pdf) {
		return false
	}
	room := int64(maxUnpacked)
	for _, at := range objects().FindAllIndex(pdf, -1) {
		n, ok := arePassive(pdf, at[0], room)
		if room -= n; !ok {
			return false
		}
	}
	return true
}

// arePassive examines an object stream whose dictionary contains at, and returns its uncompressed
// size.
func arePassive(pdf []byte, at int, room int64) (n int64, ok bool) {
	begin := bytes.LastIndex(pdf[:at], []byte("obj"))
	end := bytes.Index(pdf[at:], []byte("stream"))
	if begin < 0 || end < 0 {
		return 0, false
	}
	if dict := pdf[begin : at+end]; !deflated().Match(dict) || bytes.Contains(dict, []byte("Parms")) {
		return 0, false
	}
	packed := bytes.TrimLeft(pdf[at+end+len("stream"):], "\r\n")
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return 0, false
	}
	text, err := io.ReadAll(io.LimitReader(r, room+1))
	if err != nil && !errors.Is(err, zlib.ErrChecksum) || int64(len(text)) > room {
		return 0, false
	}
	text = append(text, ' ')
	return int64(len(text)), !active().Match(text) && !disguised().Match(text)
}

// lazily compiles an expression when it is first used: it would cost every start of the program and of a worker.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
