package egress

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
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

// require fails unless what the recording has under a name is as it is wanted.
func (p *recordingParser) require(ok bool, want string, got any) {
	if !ok {
		text, _ := json.Marshal(got)
		p.fail(want, abi.Clean(abi.Cut(string(text), 80)))
	}
}

// decode reads a line as one object without unknown or repeated members.
func (p *recordingParser) decode(line []byte, into any) bool {
	if _, err := strictjson.Parse(line, strictjson.ParseOptions{MaxValues: 1_000_000}); err != nil {
		p.fail("one JSON object", err.Error())
		return false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		p.fail(wrong.Field+" as "+wrong.Type.Kind().String(), wrong.Value)
	} else if err != nil {
		p.fail("the members of a recording", abi.Clean(abi.Cut(strings.TrimPrefix(err.Error(), "json: "), 160)))
	}
	return err == nil
}

func (p *recordingParser) header(line []byte, h *Header) (exchanges int) {
	var first struct {
		Version *json.RawMessage `json:"sluice_recording"`
	}
	if err := json.Unmarshal(line, &first); err == nil && first.Version == nil {
		p.fail(`the header of a recording, with a member "sluice_recording"`, "none")
	} else if err == nil && string(*first.Version) != strconv.Itoa(RecordingVersion) {
		p.fail(fmt.Sprintf("sluice_recording %d, which this build reads", RecordingVersion),
			abi.Clean(abi.Cut(string(*first.Version), 80)))
	}
	var l headerLine
	if p.err != nil || !p.decode(line, &l) {
		return 0
	}
	s := l.Start
	p.require(l.ConnectorID != "", "connector_id as a string", l.ConnectorID)
	p.require(l.Module != "", "module as a digest", l.Module)
	p.require(isClock(l.Clock), "clock as a time such as 2026-01-02T03:04:05.678Z, from 1970 to 2099", l.Clock)
	p.require(isHex32(l.Seed), "seed as 64 hexadecimal digits", l.Seed)
	p.require(l.Exchanges >= 0 && l.Exchanges <= maxExchanges,
		fmt.Sprintf("exchanges as a whole number from 0 to %d", maxExchanges), l.Exchanges)
	p.require(abi.IsSlug(s.Connection), "start.connection as the id of a connection", s.Connection)
	p.require(s.Mode == abi.FullRefresh || s.Mode == abi.Incremental,
		"start.mode as "+abi.FullRefresh+" or "+abi.Incremental, s.Mode)
	*h = Header{ConnectorID: l.ConnectorID, Version: l.Connector, Module: l.Module, Connection: s.Connection, Mode: s.Mode,
		Scope: p.object("start.scope", s.Scope, true), State: p.object("start.state", s.State, false),
		Config: p.object("start.config", s.Config, false), Hosts: s.Hosts, Secrets: s.Secrets}
	if p.err == nil {
		h.Clock, _ = time.Parse(clockForm, l.Clock)
		_, _ = hex.Decode(h.Seed[:], []byte(l.Seed)) // checked
	}
	return l.Exchanges
}

func isClock(s string) bool {
	t, err := time.Parse(clockForm, s)
	return err == nil && t.Year() >= 1970 && t.Year() < 2100 && t.Format(clockForm) == s
}

func isHex32(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// object returns an object of the header without white space.
func (p *recordingParser) object(what string, raw json.RawMessage, required bool) json.RawMessage {
	if raw == nil && !required {
		return nil
	}
	p.require(len(raw) > 0 && raw[0] == '{', what+" as an object", raw)
	return strictjson.AppendCompact(nil, raw)
}

func (p *recordingParser) exchange(line []byte) Exchange {
	x := Exchange{Line: p.line}
	var l exchangeLine
	if !p.decode(line, &l) {
		return x
	}
	if (l.Answer == nil) == (l.Failure == nil) {
		p.fail("either an answer or a failure", "both or none")
		return x
	}
	q := l.Request
	p.require(slices.Contains(methods, q.Method), "request.method as one of "+strings.Join(methods, " "), q.Method)
	p.require(q.Redirect == "" || q.Redirect == "manual" || q.Redirect == "error",
		"request.redirect as manual or error", q.Redirect)
	p.require(q.MaxBytes >= 0 && q.MaxBytes <= 1<<40, "request.max_bytes as a number of bytes", q.MaxBytes)
	x.Request = RecordedRequest{Method: q.Method, URL: q.URL, Redirect: q.Redirect, MaxBytes: q.MaxBytes,
		Headers: p.headers("request", q.Headers)}
	if b := q.Body; b != nil && *b == (bodyLine{SHA256: b.SHA256, Length: b.Length}) && isHex32(b.SHA256) {
		p.require(b.Length >= wholeBody && b.Length <= 1<<40, "request.body.length as that of a long body", b.Length)
		x.Request.Digest, x.Request.Length = b.SHA256, b.Length
	} else {
		x.Request.Body = p.body("request", b)
	}
	if a := l.Answer; a != nil {
		p.require(a.Status >= 100 && a.Status <= 999, "answer.status as a whole number from 100 to 999", a.Status)
		p.require(a.Redirects >= 0 && a.Redirects <= 1000, "answer.redirects as a whole number from 0 to 1000", a.Redirects)
		x.Answer = &RecordedResponse{Status: a.Status, URL: a.URL, Redirects: a.Redirects, Bytes: -1,
			Headers: p.headers("answer", a.Headers), Body: p.body("answer", a.Body), Broken: p.failure("answer.broken", a.Broken)}
		if n := a.Bytes; n != nil {
			p.require(*n >= 0 && *n <= 1<<50, "answer.bytes as a number of bytes", *n)
			x.Answer.Bytes = *n
		}
	}
	x.Failure = p.failure("failure", l.Failure)
	return x
}

// headers returns pairs of a name and a value.
func (p *recordingParser) headers(of string, list [][]string) (out [][2]string) {
	for _, pair := range list {
		ok := len(pair) == 2 && httpguts.ValidHeaderFieldName(pair[0]) && httpguts.ValidHeaderFieldValue(pair[1])
		if p.require(ok, of+".headers as pairs of a name and a value", pair); !ok {
			return nil
		}
		out = append(out, [2]string(pair))
	}
	return out
}

func (p *recordingParser) body(of string, b *bodyLine) []byte {
	switch {
	case b == nil:
		return nil
	case b.Text != nil && *b.Text != "" && b.Base64 == nil && b.SHA256 == "" && b.Length == 0:
		return []byte(*b.Text)
	case b.Base64 != nil && *b.Base64 != "" && b.Text == nil && b.SHA256 == "" && b.Length == 0:
		out, err := base64.StdEncoding.Strict().DecodeString(*b.Base64)
		p.require(err == nil && !strings.ContainsAny(*b.Base64, "\r\n"), of+".body.base64 as base64", *b.Base64)
		return out
	}
	p.require(false, of+".body with text, with base64, or of a long request with sha256 and length", b)
	return nil
}

// failures lists the errnos with which a request can fail.
var failures = []abi.Errno{abi.EINVAL, abi.ETOOBIG, abi.EDENIED, abi.ENOTSUP, abi.ETIMEOUT,
	abi.EUNAVAIL, abi.ERATE, abi.EIO}

func (p *recordingParser) failure(what string, l *failureLine) *Error {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(failures, func(n abi.Errno) bool { return n.String() == l.Errno })
	p.require(i >= 0, what+".errno as one that a request can fail with", l.Errno)
	p.require(l.Code != "", what+".code as a string", l.Code)
	p.require(l.RetryAfter >= 0 && l.RetryAfter <= 1<<50, what+".retry_after_ms as a number of milliseconds", l.RetryAfter)
	return &Error{Errno: failures[max(i, 0)], Code: l.Code, Message: l.Message, Step: l.Step, RetryAfter: l.RetryAfter}
}
