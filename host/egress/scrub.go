package egress

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"slices"
	"sort"
	"strings"
)

// An echo is an encoding of a sealed value and the handle that replaces it. A loose one
// shares characters with its neighbours, so a recording also drops the character before it
// and the rest of the word.
type echo struct {
	form, handle []byte
	loose        bool
}

// echoes returns all encodings of all values, longest first, so that none hides another.
// The slice must not be changed.
func (s *Seals) echoes() []echo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// echo adds the encodings of a value. The caller holds mu.
func (s *Seals) echo(handle string, forms [][]byte) { s.all = withForms(s.all, handle, forms) }

// withForms adds the encodings of a value to a list.
func withForms(list []echo, handle string, forms [][]byte) []echo {
	for _, form := range forms {
		list = withEcho(list, echo{form: form, handle: []byte(handle)})
	}
	return list
}

// withEcho adds an encoding that is not in the list, longest first. It returns a new list,
// because the old one may be in use.
func withEcho(list []echo, e echo) []echo {
	if slices.ContainsFunc(list, func(o echo) bool { return bytes.Equal(o.form, e.form) }) {
		return list
	}
	at := sort.Search(len(list), func(i int) bool { return len(list[i].form) < len(e.form) })
	return slices.Insert(slices.Clone(list), at, e)
}

// any reports whether there are sealed values, or may be later.
func (s *Seals) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byHandle) > 0 || len(s.all) > 0 || s.tokens != nil
}

// masks returns what must not be logged: echoes, and values that the guest knows in plain
// text.
func (s *Seals) masks() []echo {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.all, s.plain)
	slices.SortStableFunc(all, func(a, b echo) int { return len(b.form) - len(a.form) })
	return all
}

// redacted replaces a value without a handle.
const redacted = "[REDACTED_SECRET]"

// unseal replaces values in a text with handles.
func unseal(echoes []echo, text string) string {
	if len(echoes) == 0 {
		return text
	}
	done, rest := replaceEchoes(nil, echoes, []byte(text), 0)
	return string(append(done, rest...))
}

// replaceEchoes appends b to done with values replaced by handles, except the last keep
// bytes, in which a longer value could continue; it returns those. Replacements are not
// scanned again.
func replaceEchoes(done []byte, echoes []echo, b []byte, keep int) (out, rest []byte) {
	next := unknown(echoes)
	for pos := 0; ; {
		at, which := nextEcho(b, echoes, next, pos)
		limit := max(pos, len(b)-keep)
		if at >= limit {
			return append(done, b[pos:limit]...), b[limit:]
		}
		done = append(append(done, b[pos:at]...), echoes[which].handle...)
		pos = at + len(echoes[which].form)
	}
}

// nextEcho finds the first echo from pos on, and of several the longest; which is -1 for
// none. next caches the next position of each.
func nextEcho(text []byte, echoes []echo, next []int, pos int) (at, which int) {
	at, which = len(text), -1
	for i, e := range echoes {
		if next[i] < pos {
			if next[i] = bytes.Index(text[pos:], e.form); next[i] < 0 {
				next[i] = len(text)
			} else {
				next[i] += pos
			}
		}
		if next[i] < at {
			at, which = next[i], i
		}
	}
	return at, which
}

// unknown returns the initial cache for nextEcho.
func unknown(echoes []echo) []int { return slices.Repeat([]int{-1}, len(echoes)) }

// A Spelling is a possible spelling of a sealed value, and the handle that replaces it.
type Spelling struct {
	Form   []byte
	Handle string
}

// Unsealed returns src with all spellings of sealed values replaced by handles, whatever
// its type.
func Unsealed(src io.Reader, list []Spelling) io.Reader {
	if len(list) == 0 {
		return src
	}
	var echoes []echo
	for _, s := range list {
		echoes = withForms(echoes, s.Handle, [][]byte{s.Form})
	}
	return newScrubber(src, func() []echo { return echoes })
}

// A scrubber replaces sealed values in a body with handles, including values across reads:
// it holds back bytes that could begin one.
//
// Invariant: these are returned only once more of the body shows that they are not a value,
// or the body has ended. An error is not an end.
type scrubber struct {
	src    io.Reader
	echoes func() []echo // current list: a body may outlast a token
	held   []byte        // not scanned completely
	done   []byte        // to be returned
	err    error         // of src, returned after done
}

func newScrubber(src io.Reader, echoes func() []echo) *scrubber {
	return &scrubber{src: src, echoes: echoes}
}

// scrubPiece is the size of a read.
const scrubPiece = 32 << 10

func (s *scrubber) Read(p []byte) (int, error) {
	for len(s.done) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.done)
	s.done = s.done[n:]
	return n, nil
}

// fill reads a piece and scans as much as it can.
func (s *scrubber) fill() {
	buf := append(s.held, make([]byte, scrubPiece)...)
	n, err := s.src.Read(buf[len(s.held):])
	buf, s.err = buf[:len(s.held)+n], err
	echoes, keep := s.echoes(), 0 // a value may have begun in so many bytes
	if !errors.Is(err, io.EOF) && len(echoes) > 0 {
		keep = len(echoes[0].form) - 1
	}
	s.done, s.held = replaceEchoes(nil, echoes, buf, keep)
	switch {
	case errors.Is(err, io.EOF):
		s.done = cutShort(echoes, s.done)
	case err != nil:
		s.held = nil
	}
}

// cutShort replaces the beginning of a value at the end of a body with a handle, because
// the sender may have truncated it there.
func cutShort(echoes []echo, body []byte) []byte {
	at, handle := len(body), []byte(nil)
	for _, e := range echoes {
		if bytes.HasSuffix(body, e.handle) {
			return body
		}
		for n := min(len(body), len(e.form)-1); n >= shortestValue && n > len(body)-at; n-- {
			if bytes.HasSuffix(body, e.form[:n]) {
				at, handle = len(body)-n, e.handle
			}
		}
	}
	return append(body[:at], handle...)
}

// maybeText reports whether a body of this type may be text.
func maybeText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || isText(kind) {
		return true
	}
	class, _, _ := strings.Cut(kind, "/")
	return !slices.Contains([]string{"image", "audio", "video", "font"}, class) && !slices.Contains(noText, kind)
}

var noText = []string{"application/octet-stream", "application/zip", "application/gzip", "application/x-gzip",
	"application/x-tar", "application/x-7z-compressed",
	"application/x-bzip2", "application/zstd", "application/pdf", "application/wasm", "application/vnd.sqlite3"}

// cutsValues reports whether a partial body from an origin could reveal part of a sealed
// value: a text from anywhere, and any body from a value's destination.
func (s *Seals) cutsValues(origin, contentType string) bool {
	if maybeText(contentType) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sealed := range s.byHandle {
		if slices.ContainsFunc(sealed.destinations, func(p destination) bool { return p.origin == origin }) {
			return true
		}
	}
	return false
}
