package egress

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A RecordingError says where a file is not a valid recording, and what is expected there.
type RecordingError struct {
	Line      int
	Want, Got string
}

func (e *RecordingError) Error() string {
	return fmt.Sprintf("line %d: want %s, got %s", e.Line, e.Want, e.Got)
}

// ParseRecording parses a recording completely, without trusting it. The error is a
// *RecordingError.
func ParseRecording(text []byte) (*Recording, error) {
	if len(text) > MaxRecordedFile {
		return nil, &RecordingError{1, fmt.Sprintf("a recording of at most %d MiB", MaxRecordedFile>>20), "more"}
	}
	p := &recordingParser{}
	out := &Recording{}
	count := 0
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		p.line++
		switch {
		case !ended:
			p.fail("a line that ends", "the end of the file within it")
		case p.line == 1:
			count = p.header(line, &out.Header)
		case p.line-1 > count:
			p.fail(fmt.Sprintf("the end of the file after %d exchanges, as the header says", count), "another line")
		default:
			out.Exchanges = append(out.Exchanges, p.exchange(line))
		}
		if p.err != nil {
			return nil, p.err
		}
		text = rest
	}
	if n := len(out.Exchanges); p.line == 0 || n < count {
		p.line++
		want := "the header of a recording"
		if p.line > 1 {
			want = fmt.Sprintf("exchange %d of %d", n+1, count)
		}
		return nil, &RecordingError{p.line, want, "the end of the file"}
	}
	return out, nil
}

// A recordingParser keeps the first error.
type recordingParser struct {
	line int
	err  *RecordingError
}

func (p *recordingParser) fail(want, got string) {
	if p.err == nil {
		p.err = &RecordingError{p.line, want, got}
	}
}

// got describes an unexpected value.
func got(v strictjson.Value) string {
	if v.Kind == 0 {
		return "nothing"
	}
	return abi.Clean(abi.Cut(string(v.Raw), 80))
}

// A field is one member of an object.
type field struct {
	name     string
	required bool
	read     func(what string, v strictjson.Value)
}

// object reads an object with exactly these members.
func (p *recordingParser) object(what string, v strictjson.Value, fields ...field) {
	if !v.Is(strictjson.KindObject) {
		p.fail(what+" as an object", got(v))
		return
	}
	for name := range v.Members() {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			var names []string
			for _, f := range fields {
				names = append(names, f.name)
			}
			p.fail("a member of "+what+": "+strings.Join(names, ", "), strconv.Quote(abi.Cut(abi.Clean(name), 80)))
		}
	}
	for _, f := range fields {
		m, ok := v.Member(f.name)
		switch {
		case ok && p.err == nil:
			f.read(what+"."+f.name, m)
		case !ok && f.required:
			p.fail(what+"."+f.name, "none")
		}
	}
}

// whole reads a line as one object.
func (p *recordingParser) whole(line []byte) strictjson.Value {
	v, err := strictjson.Parse(line, strictjson.ParseOptions{MaxValues: 1_000_000})
	if err != nil {
		p.fail("one JSON object", err.Error())
	}
	return v
}

func (p *recordingParser) text(into *string, ok func(string) bool, want string) func(string, strictjson.Value) {
	return func(what string, v strictjson.Value) {
		s, is := v.Text()
		if !is || ok != nil && !ok(s) {
			p.fail(what+" as "+want, got(v))
		}
		*into = s
	}
}

func (p *recordingParser) integer(into *int64, least, most int64) func(string, strictjson.Value) {
	return func(what string, v strictjson.Value) {
		n, ok := v.SafeInteger()
		if !ok || n < least || n > most {
			p.fail(fmt.Sprintf("%s as a whole number from %d to %d", what, least, most), got(v))
		}
		*into = n
	}
}

func (p *recordingParser) json(into *[]byte) func(string, strictjson.Value) {
	return func(what string, v strictjson.Value) {
		if !v.Is(strictjson.KindObject) {
			p.fail(what+" as an object", got(v))
		}
		*into = strictjson.AppendCompact(nil, v.Raw)
	}
}

func (p *recordingParser) texts(into *[]string) func(string, strictjson.Value) {
	return func(what string, v strictjson.Value) {
		if !v.Is(strictjson.KindArray) {
			p.fail(what+" as an array of strings", got(v))
			return
		}
		for item := range v.Items() {
			s, ok := item.Text()
			if !ok {
				p.fail(what+" as an array of strings", got(item))
			}
			*into = append(*into, s)
		}
	}
}

func (p *recordingParser) header(line []byte, h *Header) (exchanges int) {
	v := p.whole(line)
	if first, ok := v.Member("sluice_recording"); p.err == nil && !ok {
		p.fail(`the header of a recording, with a member "sluice_recording"`, "none")
	} else if n, whole := first.SafeInteger(); p.err == nil && (!whole || n != RecordingVersion) {
		p.fail(fmt.Sprintf("sluice_recording %d, which this build reads", RecordingVersion), got(first))
	}
	if p.err != nil {
		return 0
	}
	var clock, seed string
	var version, count int64
	one := func(s string) bool { return s != "" }
	p.object("the header", v,
		field{"sluice_recording", true, p.integer(&version, RecordingVersion, RecordingVersion)},
		field{"connector_id", true, p.text(&h.ConnectorID, one, "a string")},
		field{"version", true, p.text(&h.Version, nil, "a string")},
		field{"module", true, p.text(&h.Module, one, "a digest")},
		field{"clock", true, p.text(&clock, isClock, "a time such as 2026-01-02T03:04:05.678Z, from 1970 to 2099")},
		field{"seed", true, p.text(&seed, isHex32, "64 hexadecimal digits")},
		field{"exchanges", true, p.integer(&count, 0, maxExchanges)},
		field{"start", true, func(what string, v strictjson.Value) { p.start(what, v, h) }},
	)
	if p.err != nil {
		return 0
	}
	h.Clock, _ = time.Parse(clockForm, clock)
	_, _ = hex.Decode(h.Seed[:], []byte(seed)) // checked
	return int(count)
}

func isClock(s string) bool {
	t, err := time.Parse(clockForm, s)
	return err == nil && t.Year() >= 1970 && t.Year() < 2100 && t.Format(clockForm) == s
}

func isHex32(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

func (p *recordingParser) start(what string, v strictjson.Value, h *Header) {
	p.object(what, v,
		field{"connection", true, p.text(&h.Connection, abi.IsSlug, "the id of a connection")},
		field{"mode", true, p.text(&h.Mode, func(s string) bool { return s == abi.FullRefresh || s == abi.Incremental },
			abi.FullRefresh+" or "+abi.Incremental)},
		field{"scope", true, p.json((*[]byte)(&h.Scope))},
		field{"state", false, p.json((*[]byte)(&h.State))},
		field{"config", false, p.json((*[]byte)(&h.Config))},
		field{"hosts", false, p.texts(&h.Hosts)},
		field{"secrets", false, p.texts(&h.Secrets)},
	)
}

func (p *recordingParser) exchange(line []byte) Exchange {
	x := Exchange{Line: p.line}
	v := p.whole(line)
	if p.err != nil {
		return x
	}
	p.object("an exchange", v,
		field{"request", true, func(what string, v strictjson.Value) { p.request(v, &x.Request) }},
		field{"answer", false, func(what string, v strictjson.Value) { x.Answer = p.answer(v) }},
		field{"failure", false, func(what string, v strictjson.Value) { x.Failure = p.failure(what, v) }},
	)
	if (x.Answer == nil) == (x.Failure == nil) {
		p.fail("either an answer or a failure", "both or none")
	}
	return x
}

func (p *recordingParser) request(v strictjson.Value, q *RecordedRequest) {
	p.object("request", v,
		field{"method", true, p.text(&q.Method, func(s string) bool { return slices.Contains(methods, s) },
			"one of "+strings.Join(methods, " "))},
		field{"url", true, p.text(&q.URL, nil, "a URL")},
		field{"redirect", false,
			p.text(&q.Redirect, func(s string) bool { return s == "manual" || s == "error" }, "manual or error")},
		field{"max_bytes", false, p.integer(&q.MaxBytes, 1, 1<<40)},
		field{"headers", false, p.headers(&q.Headers)},
		field{"body", false, func(what string, v strictjson.Value) { p.body(what, v, &q.Body, q) }},
	)
}

func (p *recordingParser) answer(v strictjson.Value) *RecordedResponse {
	a := &RecordedResponse{Bytes: -1}
	var status, redirects int64
	p.object("answer", v,
		field{"status", true, p.integer(&status, 100, 999)},
		field{"url", true, p.text(&a.URL, nil, "a URL")},
		field{"redirects", false, p.integer(&redirects, 0, 1000)},
		field{"bytes", false, p.integer(&a.Bytes, 0, 1<<50)},
		field{"headers", false, p.headers(&a.Headers)},
		field{"body", false, func(what string, v strictjson.Value) { p.body(what, v, &a.Body, nil) }},
		field{"broken", false, func(what string, v strictjson.Value) { a.Broken = p.failure(what, v) }},
	)
	a.Status, a.Redirects = int(status), int(redirects)
	return a
}

func (p *recordingParser) headers(into *[][2]string) func(string, strictjson.Value) {
	return func(what string, v strictjson.Value) {
		if !v.Is(strictjson.KindArray) {
			p.fail(what+" as an array of pairs", got(v))
			return
		}
		for item := range v.Items() {
			pair, ok := headerPair(item)
			if !ok || !httpguts.ValidHeaderFieldName(pair[0]) || !httpguts.ValidHeaderFieldValue(pair[1]) {
				p.fail(what+" as pairs of a name and a value", got(item))
				return
			}
			*into = append(*into, pair)
		}
	}
}

// body reads a body. long, unless nil, may have a digest instead.
func (p *recordingParser) body(what string, v strictjson.Value, into *[]byte, long *RecordedRequest) {
	var text, packed, digest string
	var length int64
	fields := []field{
		{"text", false, p.text(&text, nil, "a string")},
		{"base64", false, p.text(&packed, nil, "base64")},
	}
	if long != nil {
		fields = append(fields,
			field{"sha256", false, p.text(&digest, isHex32, "64 hexadecimal digits")},
			field{"length", false, p.integer(&length, wholeBody, 1<<40)})
	}
	p.object(what, v, fields...)
	if p.err != nil {
		return
	}
	switch n := v.Len(); {
	case text != "" && n == 1:
		*into = []byte(text)
	case packed != "" && n == 1:
		b, err := base64.StdEncoding.Strict().DecodeString(packed)
		if err != nil || strings.ContainsAny(packed, "\r\n") {
			p.fail(what+".base64 as base64", "text that is none")
		}
		*into = b
	case digest != "" && length > 0 && n == 2:
		long.Digest, long.Length = digest, length
	default:
		p.fail(what+" with text, with base64, or of a long request with sha256 and length", got(v))
	}
}

// errnoOf lists the errnos with which a request can fail.
var errnoOf = []abi.Errno{abi.EINVAL, abi.ETOOBIG, abi.EDENIED, abi.ENOTSUP, abi.ETIMEOUT,
	abi.EUNAVAIL, abi.ERATE, abi.EIO}

func (p *recordingParser) failure(what string, v strictjson.Value) *Error {
	e := &Error{}
	var errno string
	p.object(what, v,
		field{"errno", true, p.text(&errno, nil, "the name of an errno")},
		field{"code", true, p.text(&e.Code, func(s string) bool { return s != "" }, "a string")},
		field{"message", true, p.text(&e.Message, nil, "a string")},
		field{"step", false, p.text(&e.Step, nil, "a string")},
		field{"retry_after_ms", false, p.integer(&e.RetryAfter, 0, 1<<50)},
	)
	i := slices.IndexFunc(errnoOf, func(n abi.Errno) bool { return n.String() == errno })
	if i < 0 {
		p.fail(what+".errno as one that a request can fail with", strconv.Quote(abi.Cut(abi.Clean(errno), 80)))
		return e
	}
	e.Errno = errnoOf[i]
	return e
}
