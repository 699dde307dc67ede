package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// RecordingVersion is the version of recordings that this build writes and reads.
const RecordingVersion = 1

// Bounds of a recording.
const (
	MaxRecording    = 64 << 20  // bytes that a recorded run may exchange
	MaxRecordedFile = 256 << 20 // length of the file
	maxExchanges    = 100_000
	wholeBody       = 64 << 10 // of a request; a longer body is represented by its digest
)

// A Recording is what a guest was started with, requested and received in one run: enough
// to run it again without network and credentials. As a file it has one JSON object per
// line, beginning with the header. Secrets and credentials are replaced with placeholders
// (see values).
type Recording struct {
	Header    Header
	Exchanges []Exchange
}

// A Header says what was recorded, and what the guest was started with.
type Header struct {
	ConnectorID string
	Version     string // of the connector
	Module      string // its digest
	Clock       time.Time
	Seed        [32]byte
	Connection  string
	Mode        string
	Scope       json.RawMessage
	State       json.RawMessage // nil: none
	Config      json.RawMessage // nil: none
	Hosts       []string        // approved
	Secrets     []string        // names of the secrets that were set
}

// An Exchange is one request of the guest and its outcome: either Answer or Failure.
type Exchange struct {
	Line    int // in the file it was read from
	Request RecordedRequest
	Answer  *RecordedResponse
	Failure *Error
}

// A RecordedRequest is a request of the guest, with placeholders for values that must not be in a
// file. Headers are sorted by name.
type RecordedRequest struct {
	Method   string
	URL      string
	Headers  [][2]string
	Redirect string // "" means follow
	MaxBytes int64  // 0 means the limit
	Body     []byte
	Digest   string // SHA-256 of a body too long to keep; Body is then nil
	Length   int64  // of that body
}

// A RecordedResponse is what the guest saw. Broken is the error that ended its body early, or nil.
type RecordedResponse struct {
	Status    int
	Headers   [][2]string
	URL       string
	Redirects int
	Bytes     int64 // -1 if the server did not say
	Body      []byte
	Broken    *Error
}

// Append appends the recording as a file.
func (r *Recording) Append(b []byte) ([]byte, error) {
	out := bytes.NewBuffer(b)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(r.Header.line(len(r.Exchanges))); err != nil {
		return nil, err
	}
	for i := range r.Exchanges {
		if err := e.Encode(r.Exchanges[i].line()); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// headerLine and the types below are the lines of the file.
type headerLine struct {
	Version     int       `json:"sluice_recording"`
	ConnectorID string    `json:"connector_id"`
	Connector   string    `json:"version"`
	Module      string    `json:"module"`
	Clock       string    `json:"clock"`
	Seed        string    `json:"seed"`
	Exchanges   int       `json:"exchanges"`
	Start       startLine `json:"start"`
}

type startLine struct {
	Connection string          `json:"connection"`
	Mode       string          `json:"mode"`
	Scope      json.RawMessage `json:"scope"`
	State      json.RawMessage `json:"state,omitempty"`
	Config     json.RawMessage `json:"config,omitempty"`
	Hosts      []string        `json:"hosts,omitempty"`
	Secrets    []string        `json:"secrets,omitempty"`
}

type exchangeLine struct {
	Request requestLine  `json:"request"`
	Answer  *answerLine  `json:"answer,omitempty"`
	Failure *failureLine `json:"failure,omitempty"`
}

type requestLine struct {
	Method   string      `json:"method"`
	URL      string      `json:"url"`
	Redirect string      `json:"redirect,omitempty"`
	MaxBytes int64       `json:"max_bytes,omitempty"`
	Headers  [][2]string `json:"headers,omitempty"`
	Body     *bodyLine   `json:"body,omitempty"`
}

type answerLine struct {
	Status    int          `json:"status"`
	URL       string       `json:"url"`
	Redirects int          `json:"redirects,omitempty"`
	Bytes     *int64       `json:"bytes,omitempty"`
	Headers   [][2]string  `json:"headers,omitempty"`
	Body      *bodyLine    `json:"body,omitempty"`
	Broken    *failureLine `json:"broken,omitempty"`
}

// A bodyLine is a body as text, as base64 or, for a long request, as its digest.
type bodyLine struct {
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
	SHA256 string  `json:"sha256,omitempty"`
	Length int64   `json:"length,omitempty"`
}

type failureLine struct {
	Errno      string `json:"errno"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Step       string `json:"step,omitempty"`
	RetryAfter int64  `json:"retry_after_ms,omitempty"`
}

// clockForm is the time format: whole milliseconds, as guests see them.
const clockForm = "2006-01-02T15:04:05.000Z"

func (h *Header) line(exchanges int) headerLine {
	return headerLine{
		Version: RecordingVersion, ConnectorID: h.ConnectorID, Connector: h.Version, Module: h.Module,
		Clock: h.Clock.UTC().Format(clockForm), Seed: hex.EncodeToString(h.Seed[:]), Exchanges: exchanges,
		Start: startLine{h.Connection, h.Mode, h.Scope, h.State, h.Config, h.Hosts, h.Secrets},
	}
}

func (x *Exchange) line() exchangeLine {
	q := &x.Request
	out := exchangeLine{Request: requestLine{q.Method, q.URL, q.Redirect, q.MaxBytes, q.Headers, bodyOf(q.Body)},
		Failure: x.Failure.line()}
	if q.Digest != "" {
		out.Request.Body = &bodyLine{SHA256: q.Digest, Length: q.Length}
	}
	if a := x.Answer; a != nil {
		out.Answer = &answerLine{a.Status, a.URL, a.Redirects, nil, a.Headers, bodyOf(a.Body), a.Broken.line()}
		if a.Bytes >= 0 {
			out.Answer.Bytes = &a.Bytes
		}
	}
	return out
}

func (e *Error) line() *failureLine {
	if e == nil {
		return nil
	}
	return &failureLine{e.Errno.String(), e.Code, e.Message, e.Step, e.RetryAfter}
}

// bodyOf encodes a body, as text if it is readable.
func bodyOf(b []byte) *bodyLine {
	if len(b) == 0 {
		return nil
	}
	text := string(b)
	if isReadable(text) {
		return &bodyLine{Text: &text}
	}
	text = base64.StdEncoding.EncodeToString(b)
	return &bodyLine{Base64: &text}
}

// isReadable reports whether JSON can hold text and a terminal can show it.
func isReadable(text string) bool {
	for _, c := range text {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c >= 0x7f && c < 0xa0 || c == '\uFEFF' {
			return false
		}
	}
	return utf8.ValidString(text)
}
