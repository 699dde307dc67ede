package egress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Recorder records what the guest of one run requests and receives. It fetches bodies
// completely before the guest sees the answer. Everything is kept unscrubbed until the end,
// because a value may turn out to be a secret later.
type Recorder struct {
	client *Client
	*values

	mu        sync.Mutex // guards the fields below
	exchanges []recordedExchange
	bytes     int
	full      bool
}

// A recordedExchange is an exchange before it is scrubbed.
type recordedExchange struct {
	request *Request
	answer  *RecordedResponse
	failure *Error
}

// NewRecorder returns a recorder of what a client does.
func NewRecorder(c *Client) *Recorder { return &Recorder{client: c, values: newValues()} }

var errFull = Errorf(abi.ETOOBIG, "recording_full", "a run that is recorded may exchange %d MiB; narrow it with --scope",
	MaxRecording>>20)

// Do makes a request and records it, unless the run is ending.
func (r *Recorder) Do(ctx context.Context, q *Request) (*Response, error) {
	out, err := r.client.Do(ctx, q)
	if err != nil {
		e := AsError(err)
		if e.Errno == abi.ECANCELED {
			return nil, e
		}
		return nil, r.record(recordedExchange{request: q, failure: e}, e)
	}
	defer context.AfterFunc(ctx, out.Body.Abort)()
	body, err := io.ReadAll(io.LimitReader(out.Body, MaxRecording+1))
	_ = out.Body.Close() // read
	var broken *Error
	if err != nil {
		if broken = AsError(err); broken.Errno == abi.ECANCELED {
			return nil, broken
		}
	}
	out.Headers = slices.DeleteFunc(out.Headers, func(pair [2]string) bool { // headers that a file could not reproduce
		return !httpguts.ValidHeaderFieldName(pair[0]) || !httpguts.ValidHeaderFieldValue(pair[1])
	})
	a := &RecordedResponse{out.Status, out.Headers, out.URL, out.Redirects, out.Bytes, body, broken}
	out.Body, out.Sent = newBufferedBody(body, broken), int64(len(body))
	return out, r.record(recordedExchange{request: q, answer: a}, nil)
}

// record records an exchange. It returns err, or an error if the recording is full.
func (r *Recorder) record(t recordedExchange, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += len(t.request.URL) + len(t.request.Body) + pairBytes(t.request.Headers)
	if a := t.answer; a != nil {
		r.bytes += len(a.URL) + len(a.Body) + pairBytes(a.Headers)
	}
	if r.full = r.full || r.bytes > MaxRecording || len(r.exchanges) == maxExchanges; r.full {
		return errFull
	}
	r.exchanges = append(r.exchanges, t)
	return err
}

func pairBytes(headers [][2]string) (n int) {
	for _, pair := range headers {
		n += len(pair[0]) + len(pair[1]) + 4
	}
	return n
}

// Close ends requests in progress.
func (r *Recorder) Close() { r.client.Close() }

// Limits are those of the client.
func (r *Recorder) Limits() Limits { return r.client.Limits() }

// Seals are those of the client.
func (r *Recorder) Seals() *Seals { return r.client.Seals() }

// Stopped says that a recording is full.
func (r *Recorder) Stopped(bool) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return errFull
	}
	return nil
}

// A Review summarises a recording for its owner before it is shared.
type Review struct {
	Exchanges int
	Origins   map[string]int            // requests by origin
	Scrubbed  map[string]map[string]int // by place, by placeholder
}

// maxCredentials bounds the credentials that are looked for.
const maxCredentials = 200

// Finish returns the recording as a file. It is called once, after the run. h contains
// values as the guest had them.
func (r *Recorder) Finish(h Header) ([]byte, *Review, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.findCredentials(); err != nil {
		return nil, nil, err
	}
	review := &Review{Exchanges: len(r.exchanges), Origins: map[string]int{}, Scrubbed: map[string]map[string]int{}}
	found := func(where, mark string) {
		if review.Scrubbed[where] == nil {
			review.Scrubbed[where] = map[string]int{}
		}
		review.Scrubbed[where][mark]++
	}
	out := &Recording{Header: h}
	var err error
	for _, doc := range []*json.RawMessage{&out.Header.Scope, &out.Header.State, &out.Header.Config} {
		if *doc, err = r.scrubJSON(*doc, found); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range r.exchanges {
		x := Exchange{Request: r.values.recordRequest(t.request, found)}
		x.Answer, x.Failure = r.values.recordResponse(t, found)
		out.Exchanges = append(out.Exchanges, x)
		review.Origins[originOf(x.Request.URL)]++
	}
	text, err := out.Append(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("encode recording: %w", err)
	}
	if _, err := ParseRecording(text); err != nil {
		return nil, nil, fmt.Errorf("recording cannot be read back: %w", err)
	}
	return text, review, nil
}

// findCredentials adds credentials that no manifest declares.
func (r *Recorder) findCredentials() error {
	n := 0
	seen := map[string]bool{}
	add := func(text string) {
		if n > maxCredentials || seen[text] || !bytes.Equal(r.values.hide([]byte(text), nil), []byte(text)) {
			return
		}
		seen[text] = true
		if n++; n <= maxCredentials {
			r.values.addCredential(n, text, exactForms(text))
		}
	}
	for _, t := range r.exchanges {
		credentials(t.request.URL, t.request.Headers, t.request.Body, add)
		if a := t.answer; a != nil {
			credentials(a.URL, a.Headers, a.Body, add)
		}
	}
	if n > maxCredentials {
		return fmt.Errorf("the run used more credentials than a recording can hide, which is %d", maxCredentials)
	}
	return nil
}

func exactForms(text string) [][]byte {
	quoted := strictjson.AppendQuote(nil, text)
	return [][]byte{quoted[1 : len(quoted)-1], []byte(url.QueryEscape(text)), []byte(url.PathEscape(text))}
}

// scrubJSON hides values in a JSON text, which must stay JSON, so a value that is a number
// cannot be hidden.
func (r *Recorder) scrubJSON(doc json.RawMessage, found func(where, mark string)) (json.RawMessage, error) {
	if doc == nil {
		return nil, nil
	}
	out := json.RawMessage(r.values.hideBody(doc, nil, atPlace("start", found)))
	if _, err := strictjson.Parse(out, strictjson.ParseOptions{}); err != nil {
		return nil, errors.New("a secret is a number in the settings or cursors of this run, where it cannot be hidden")
	}
	return out, nil
}

// recordResponse returns an answer in the form of recordings. It drops the server's length of a
// body that was scrubbed.
func (v *values) recordResponse(t recordedExchange, found func(where, mark string)) (*RecordedResponse, *Error) {
	if t.failure != nil {
		return nil, v.recordError(t.failure, found)
	}
	a, scrubbed := t.answer, false
	body := v.hideBody(a.Body, a.Headers, func(mark string, _ int) {
		scrubbed = true
		found("answer body", mark)
	})
	out := &RecordedResponse{Status: a.Status, Headers: v.hideHeaders("answer", a.Headers, found),
		URL:       v.hideURL(a.URL, atPlace("answer url", found)),
		Redirects: a.Redirects, Bytes: a.Bytes, Body: body, Broken: v.recordError(a.Broken, found)}
	if scrubbed {
		out.Bytes = -1
		out.Headers = slices.DeleteFunc(out.Headers, func(pair [2]string) bool { return pair[0] == "Content-Length" })
	}
	return out, nil
}

func (v *values) recordError(e *Error, found func(where, mark string)) *Error {
	if e == nil {
		return nil
	}
	out := *e
	out.Message = v.hideURL(e.Message, atPlace("failure", found))
	return &out
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "no server"
	}
	return u.Scheme + "://" + u.Host
}

// Lines describes what was scrubbed, one place per line.
func (r *Review) Lines() (out []string) {
	for _, where := range slices.Sorted(maps.Keys(r.Scrubbed)) {
		var parts []string
		for _, mark := range slices.Sorted(maps.Keys(r.Scrubbed[where])) {
			parts = append(parts, mark+" × "+strconv.Itoa(r.Scrubbed[where][mark]))
		}
		out = append(out, where+": "+strings.Join(parts, ", "))
	}
	return out
}
