package egress

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// A Replayer answers a guest's requests from a recording, in its order, without network.
type Replayer struct {
	recording *Recording
	seals     *Seals
	*values

	mu    sync.Mutex // guards the fields below
	next  int
	fault *Error
}

// NewReplayer returns a replayer of a recording.
func NewReplayer(r *Recording) *Replayer {
	p := &Replayer{recording: r, seals: &Seals{}, values: newValues()}
	r.standIns(p.values)
	return p
}

var credentialNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{credential:([1-9][0-9]{0,3})\}\}`)
})

// standIns adds a stand-in for every credential in the recording.
func (r *Recording) standIns(v *values) {
	seen := map[string]bool{}
	look := func(text []byte) {
		for _, m := range credentialNumber().FindAllSubmatch(text, -1) {
			if number := string(m[1]); !seen[number] && len(seen) < maxCredentials {
				seen[number] = true
				n, _ := strconv.Atoi(number) // digits
				text := standIn(r.Header.Seed, "credential", number)
				v.addCredential(n, text, exactForms(text))
			}
		}
	}
	look(r.Header.State)
	look(r.Header.Config)
	for _, x := range r.Exchanges {
		look([]byte(x.Request.URL))
		look(x.Request.Body)
		for _, pair := range x.Request.Headers {
			look([]byte(pair[1]))
		}
		if a := x.Answer; a != nil {
			look([]byte(a.URL))
			look(a.Body)
			for _, pair := range a.Headers {
				look([]byte(pair[1]))
			}
		}
	}
}

// WithStandIns returns the header with stand-ins for scrubbed values, for the START of a replay,
// and a stand-in for each of these secrets.
func (r *Recording) WithStandIns(names []string) (Header, map[string]string) {
	v := newValues()
	r.standIns(v)
	secrets := map[string]string{}
	for _, name := range names {
		secrets[name] = standIn(r.Header.Seed, "secret", name)
		v.AddSecret(name, secrets[name], secrets[name], nil)
	}
	h := r.Header
	h.Scope, h.State, h.Config = v.show(h.Scope), v.show(h.State), v.show(h.Config)
	return h, secrets
}

// Do answers with the next exchange if its request is the same. After the first difference
// nothing is answered.
func (r *Replayer) Do(_ context.Context, q *Request) (*Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault == nil {
		r.fault = r.compare(r.values.recordRequest(q, nil))
	}
	if r.fault != nil {
		return nil, r.fault
	}
	x := &r.recording.Exchanges[r.next]
	r.next++
	if e := x.Failure; e != nil {
		return nil, r.guestError(e)
	}
	a := x.Answer
	out := &Response{Status: a.Status, URL: string(r.values.show([]byte(a.URL))), Redirects: a.Redirects, Bytes: a.Bytes}
	for _, pair := range a.Headers {
		out.Headers = append(out.Headers, [2]string{pair[0], string(r.values.show([]byte(pair[1])))})
	}
	body := r.values.show(a.Body)
	out.Body, out.Sent = newBufferedBody(body, r.guestError(a.Broken)), int64(len(body))
	return out, nil
}

func (r *Replayer) guestError(e *Error) *Error {
	if e == nil {
		return nil
	}
	out := *e
	out.Message = string(r.values.show([]byte(e.Message)))
	return &out
}

// compare returns nil if q is the next request in the recording.
func (r *Replayer) compare(q RecordedRequest) *Error {
	if r.next == len(r.recording.Exchanges) {
		return mismatch("the connector makes request %d, %s, and the recording has %d", r.next+1, q.short(), r.next)
	}
	x := &r.recording.Exchanges[r.next]
	if text := x.Request.difference(&q); text != "" {
		return mismatch("request %d is not the one on line %d of the recording: %s", r.next+1, x.Line, text)
	}
	return nil
}

func mismatch(format string, args ...any) *Error {
	return Errorf(abi.EUNAVAIL, "recording_mismatch", format, args...)
}

func (q *RecordedRequest) short() string { return shortText(q.Method + " " + q.URL) }

func shortText(s string) string { return abi.Cut(abi.Clean(s), 300) }

// difference describes how got differs, or returns "".
func (q *RecordedRequest) difference(got *RecordedRequest) string {
	if q.Method != got.Method || q.URL != got.URL {
		return fmt.Sprintf("want %s, got %s", q.short(), got.short())
	}
	of := func(what, want, got string) string {
		return fmt.Sprintf("%s: %s: want %s, got %s", q.short(), what, shortText(want), shortText(got))
	}
	if q.Redirect != got.Redirect {
		return of("redirect", strconv.Quote(q.Redirect), strconv.Quote(got.Redirect))
	}
	if q.MaxBytes != got.MaxBytes {
		return of("max_bytes", strconv.FormatInt(q.MaxBytes, 10), strconv.FormatInt(got.MaxBytes, 10))
	}
	for i := range max(len(q.Headers), len(got.Headers)) {
		switch {
		case i >= len(got.Headers):
			return of("headers", q.Headers[i][0], "none")
		case i >= len(q.Headers):
			return of("headers", "no more", got.Headers[i][0])
		case !sameHeader(q.Headers[i], got.Headers[i]):
			return of("headers", strings.Join(q.Headers[i][:], ": "), strings.Join(got.Headers[i][:], ": "))
		}
	}
	if q.Digest != got.Digest || q.Length != got.Length || !bytes.Equal(q.Body, got.Body) {
		return of("body", q.bodyText(), got.bodyText())
	}
	return ""
}

// sameHeader compares headers. A scrubbed credential matches any, because the source of the
// new one may be unknown.
func sameHeader(want, got [2]string) bool {
	if want == got {
		return true
	}
	before, _, scrubbed := strings.Cut(want[1], credentialMark)
	return want[0] == got[0] && scrubbed && isCredentialHeader(want[0]) && len(got[1]) > len(before) &&
		strings.HasPrefix(got[1], before)
}

func (q *RecordedRequest) bodyText() string {
	switch {
	case q.Digest != "":
		return fmt.Sprintf("%d bytes with SHA-256 %s", q.Length, q.Digest)
	case len(q.Body) == 0:
		return "none"
	case len(q.Body) <= 200 && isReadable(string(q.Body)):
		return string(q.Body)
	}
	sum := hashOf(q.Body)
	return fmt.Sprintf("%d bytes, %x…", len(q.Body), sum[:4])
}

// Count returns the number of requests answered.
func (r *Replayer) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// Skip continues after the given number of requests.
func (r *Replayer) Skip(behind int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = min(max(behind, 0), len(r.recording.Exchanges))
}

// Close implements exchanger.
func (r *Replayer) Close() {}

// Limits are the defaults.
func (r *Replayer) Limits() Limits { return DefaultLimits() }

// Seals are none, since nothing is sent.
func (r *Replayer) Seals() *Seals { return r.seals }

// Stopped says how the connector differs from the recording.
func (r *Replayer) Stopped(gone bool) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.recording.Exchanges[min(r.next, len(r.recording.Exchanges)):]; r.fault == nil && gone && len(left) > 0 {
		return mismatch("the connector made %d requests, and the recording has %d; the next is on line %d: %s",
			r.next, len(r.recording.Exchanges), left[0].Line, left[0].Request.short())
	}
	return r.fault
}
