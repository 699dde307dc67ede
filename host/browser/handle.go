package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

// Takes implements binding.Binding: verbs, and read and close of a handle that the
// binding Owns.
func (s *Session) Takes(call abi.Call, payload []byte) bool {
	handle, named := binding.Handle(call, payload)
	return call == abi.CallBrowser || named && s.Owns(handle)
}

// Handle serves one call: a verb, or read and close of a handle that the binding
// Owns. The reply of a refusal is its JSON.
func (s *Session) Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	switch call {
	case abi.CallBrowser:
		return s.verb(ctx, payload)
	case abi.CallRead:
		return s.streams.read(ctx, payload)
	case abi.CallClose:
		return nil, s.streams.drop(payload)
	}
	return nil, abi.ENOTSUP
}

// TakeStream implements binding.StreamTaker: the caller owns the download or picture from now on.
func (s *Session) TakeStream(_ context.Context, handle uint32) (io.ReadCloser, error) {
	from, refused := s.streams.take(handle)
	if refused != nil {
		return nil, gone{}
	}
	return from, nil
}

// gone is the error of an unknown handle.
type gone struct{}

func (gone) Error() string { return "there is no such handle" }

// Reply implements binding.Fault.
func (gone) Reply() ([]byte, abi.Errno) {
	return []byte(`{"code":"unknown_handle","message":"there is no such handle"}`), abi.ENOENT
}

// verb serves one verb. Sealed values in the page's texts are replaced in every reply.
func (s *Session) verb(ctx context.Context, payload []byte) ([]byte, abi.Errno) {
	done, refused := s.begin()
	if refused != nil {
		return reply(refused), refused.Errno()
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if o := s.current(); o != nil && o.Fault() == nil {
		s.dismiss(ctx, o)
	}
	r, refused := engine.Parse(payload, engine.DefaultSettings)
	var out []byte
	if refused == nil {
		out, refused = s.answer(ctx, r)
	}
	if refused != nil {
		return s.seals.hide(reply(refused)), refused.Errno()
	}
	return out, abi.OK
}

// begin admits one call at a time.
func (s *Session) begin() (done func(), refused *engine.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.finished != nil:
		return nil, refuse("", "surface_not_open", "the run is ending")
	case s.calling:
		return nil, refuse("", "surface_busy", "another verb of this run is running")
	}
	s.calling = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calling = false
	}, nil
}

// answer returns the reply to a request: JSON of at most 1 MiB, with sealed values replaced by
// handles.
func (s *Session) answer(ctx context.Context, r *engine.Request) ([]byte, *engine.Refusal) {
	result, refused := s.do(ctx, r)
	if refused != nil {
		return nil, refused
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(result); err != nil {
		return nil, s.asRefusal(r.Verb, err)
	}
	out := s.seals.hide(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	if len(out) > engine.MaxReply {
		return nil, refuse(r.Verb, "result_too_large", "the reply would have more than 1 MiB; ask for less")
	}
	return out, nil
}

// do carries out a request.
func (s *Session) do(ctx context.Context, r *engine.Request) (any, *engine.Refusal) {
	if refused := s.permitted(r); refused != nil {
		return nil, refused
	}
	if r.Verb == engine.Open {
		return s.open(ctx, r)
	}
	o, refused := s.live(r.Verb)
	if refused != nil {
		return nil, refused
	}
	if r.Verb.IsAction() && !s.rate.take() {
		return nil, refuse(r.Verb, "rate_limited", "too many actions within a minute")
	}
	if r.Verb == engine.Mark { // it touches no page
		return s.mark(r)
	}
	give, refused := s.takePage(ctx, r.Verb)
	if refused != nil {
		return nil, refused
	}
	defer give()
	if s.owner.Load() && reads(r.Verb) {
		return nil, refuse(r.Verb, "owner_in_control", "the owner is using the browser; try again later")
	}
	switch r.Verb {
	case engine.Cookies:
		return s.cookies(ctx, o, r)
	case engine.Close:
		return s.closeVerb(ctx, o, r)
	}
	result, refused := o.engine.Do(ctx, r)
	if id := actionID(result); id != "" {
		s.tracing.capture(o, id)
	}
	return result, refused
}

// reads reports the verbs that are refused while the owner may be typing a secret. Actions report
// that in their result.
func reads(v engine.Verb) bool {
	switch v {
	case engine.Snapshot, engine.Extract, engine.Screenshot, engine.Cookies:
		return true
	}
	return false
}

// permitted refuses what the manifest does not ask for.
func (s *Session) permitted(r *engine.Request) *engine.Refusal {
	if r.Verb == engine.Upload && !s.o.Request.Uploads {
		return refuse(r.Verb, "capability_denied", "uploads are not among what the manifest asks for")
	}
	if r.Declared == "" {
		return nil
	}
	d := s.declared(r.Declared)
	if d == nil {
		return refuse(r.Verb, "invalid_request", "declared: the manifest has no action of that name")
	}
	types := func(v engine.Verb) bool { return v == engine.Type || v == engine.Fill }
	if verb := engine.Verb(d.Verb); verb != r.Verb && !(types(verb) && types(r.Verb)) {
		return refuse(r.Verb, "invalid_request", "declared: that action is declared for another verb")
	}
	return nil
}

// declared returns an action of the manifest, or nil if there is none.
func (s *Session) declared(name string) *engine.Declared {
	for i := range s.o.Request.Actions {
		if d := &s.o.Request.Actions[i]; d.Name == name {
			return d
		}
	}
	return nil
}

// live returns the surface if verbs may run on it.
func (s *Session) live(verb engine.Verb) (*opened, *engine.Refusal) {
	o := s.current()
	if o == nil {
		return nil, refuse(verb, "surface_not_open", "no browser is open; begin with open")
	}
	switch o.State() {
	case fleet.Lost:
		return nil, lostRefusal(verb, o)
	case fleet.Closing, fleet.Closed:
		return nil, refuse(verb, "surface_not_open", "the browser was closed")
	}
	return o, nil
}

func lostRefusal(verb engine.Verb, o *opened) *engine.Refusal {
	r := refuse(verb, "surface_lost", "the browser of this run is gone")
	if fault := o.Fault(); fault != nil {
		r.Reason = fault.Code
	}
	return r
}

// takePage waits for exclusive use of the page.
func (s *Session) takePage(ctx context.Context, verb engine.Verb) (give func(), refused *engine.Refusal) {
	select {
	case s.page <- struct{}{}:
		return func() { <-s.page }, nil
	case <-ctx.Done():
		return nil, refuse(verb, "surface_busy", "the call was cut short")
	}
}

// defaultRate is the number of actions per minute.
const defaultRate = 120

// rateOf returns the host's limit, or the manifest's if that is lower.
func rateOf(host int, manifest int64) int {
	if manifest > 0 && manifest < int64(host) {
		return int(manifest)
	}
	return host
}

// A rate bounds the actions within any minute.
type rate struct {
	mu   sync.Mutex  // guards what follows
	last []time.Time // times of the latest actions, a ring
	next int
}

func newRate(perMinute int) *rate { return &rate{last: make([]time.Time, perMinute)} }

// take counts an action. It reports false beyond the limit.
func (r *rate) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if oldest := r.last[r.next]; !oldest.IsZero() && now.Sub(oldest) < time.Minute {
		return false
	}
	r.last[r.next] = now
	r.next = (r.next + 1) % len(r.last)
	return true
}

// refuse returns a refusal of a verb.
func refuse(verb engine.Verb, code, message string) *engine.Refusal {
	return &engine.Refusal{Code: code, Message: message, Verb: verb}
}

// asRefusal returns an error as a refusal. Errors that are none are logged, and the guest is told
// "internal".
func (s *Session) asRefusal(verb engine.Verb, err error) *engine.Refusal {
	var r *engine.Refusal
	if errors.As(err, &r) {
		return r
	}
	if !errors.Is(err, context.Canceled) {
		s.host.o.Log.Error("a browser call failed", "run", s.runID, "verb", string(verb), "error", err)
	}
	return refuse(verb, "internal", internal)
}

const internal = "something went wrong in the host; its log says what"

// reply returns the JSON of a refusal.
func reply(r *engine.Refusal) []byte {
	message := r.Message
	if r.Errno() == (&engine.Refusal{Code: "internal"}).Errno() {
		message = internal
	}
	detail := map[string]any{"verb": r.Verb, "retryable": r.Retryable()}
	if r.Reason != "" {
		detail["reason"] = r.Reason
	}
	text, err := json.Marshal(map[string]any{"code": r.Code, "message": message, "detail": detail})
	if err != nil {
		panic("a refusal is no JSON: " + err.Error()) // it consists of strings
	}
	return text
}
