package access_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

type (
	facts   = store.Documents // for their method of the same name
	members = store.Members
)

// A fellow is the store as one of several hosts has it that share it.
type fellow struct {
	facts
	members
	epoch string
	there *atomic.Pointer[[]string] // epochs of the hosts that are there
}

// urls are what hosts say of themselves, by their epochs.
var urls = map[string]string{"a": "https://a.example", "c": "javascript:alert(1)"}

func (f fellow) Self() store.Member { return store.Member{Epoch: f.epoch} }

func (f fellow) Members(context.Context) (out []store.Member, err error) {
	for _, e := range *f.there.Load() {
		out = append(out, store.Member{ID: "host_" + e, Epoch: e, About: store.About{URL: urls[e]}})
	}
	return out, nil
}

// Of equal requests at several hosts at once one is carried out, and the others get its answer. A request of a host that
// is gone is carried out anew, and one that was given up.
func TestReplyAtSeveralHosts(t *testing.T) {
	_, st, _ := open(t)
	there := &atomic.Pointer[[]string]{}
	there.Store(&[]string{"a", "b"})
	at := func(epoch string) *access.Access {
		return must(access.Open(t.Context(), access.Options{Store: fellow{facts: st, epoch: epoch, there: there}}))
	}
	a, b := at("a"), at("b")
	type begun struct {
		reply *access.Reply
		slot  *access.Slot
		err   error
	}
	begins := func(who *access.Access, key, body string) <-chan begun {
		c := make(chan begun, 1)
		go func() {
			r, s, err := who.Replies.Begin(t.Context(), request(key, body))
			c <- begun{r, s, err}
		}()
		return c
	}
	waits := func(c <-chan begun) {
		t.Helper()
		select {
		case got := <-c:
			t.Fatalf("a request that another host carries out: %+v", got)
		case <-time.After(300 * time.Millisecond):
		}
	}
	_, s := begin(t, a, request("k", "x"))
	second := begins(b, "k", "x")
	waits(second)
	if _, _, err := b.Replies.Begin(t.Context(), request("other", "x")); err != nil {
		t.Error(err)
	}
	if err := s.Finish(t.Context(), 201, []byte(`{"n":1}`), "", 0); err != nil {
		t.Fatal(err)
	}
	if got := <-second; got.err != nil || got.reply == nil || string(got.reply.Body) != `{"n":1}` {
		t.Errorf("the second one got %+v", got)
	}

	_, s = begin(t, a, request("mismatch", "x"))
	if got := <-begins(b, "mismatch", "y"); !errors.Is(got.err, access.ErrMismatch) {
		t.Errorf("another request with the key: %+v", got)
	}
	waits(begins(b, "mismatch", "x")) // the claim is still there
	s.Abandon()

	_, s = begin(t, a, request("refused", "x"))
	second = begins(b, "refused", "x")
	waits(second)
	if err := s.Finish(t.Context(), 503, []byte(`{}`), "", 0); err != nil { // is not kept
		t.Fatal(err)
	}
	if got := <-second; got.slot == nil {
		t.Errorf("after an answer that is not kept: %+v", got)
	}

	_, s = begin(t, a, request("dies", "x"))
	second = begins(b, "dies", "x")
	waits(second)
	there.Store(&[]string{"b"})
	got := <-second
	if got.slot == nil {
		t.Fatalf("after the other host was gone: %+v", got)
	}
	if err := got.slot.Finish(t.Context(), 201, []byte(`{"n":2}`), "", 0); err != nil {
		t.Fatal(err)
	}
	late := s.Writes(201, []byte(`{"n":1}`), "") // of the host that is gone
	var conflict *store.ConflictError
	if err := st.Write(t.Context(), late...); !errors.As(err, &conflict) {
		t.Errorf("a second answer to one key: %v", err)
	}
}

// A secret that is shown once is shown again by the host that made it, and any other says where that is, for as long
// as it can show it.
func TestSecretAtAnotherHost(t *testing.T) {
	_, st, _ := open(t)
	there := &atomic.Pointer[[]string]{}
	there.Store(&[]string{"a", "b", "c"})
	var passed atomic.Int64
	at := func(epoch string) *access.Access {
		return must(access.Open(t.Context(), access.Options{Store: fellow{facts: st, epoch: epoch, there: there},
			Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }}))
	}
	a, b, c := at("a"), at("b"), at("c")
	again := func(who *access.Access, key string) string {
		t.Helper()
		reply, _, err := who.Replies.Begin(t.Context(), request(key, "x"))
		if err != nil || reply == nil {
			t.Fatalf("%+v, %v", reply, err)
		}
		return string(reply.Body)
	}
	const full, omitted = `{"key":"slk_1","keyId":"key_1"}`, `{"keyId":"key_1","secretOmitted":true}`
	for by, who := range map[string]*access.Access{"a": a, "c": c} {
		_, s := begin(t, who, request(by, "x"))
		s.Omit("key")
		if err := s.Finish(t.Context(), 201, []byte(full), "", 0); err != nil {
			t.Fatal(err)
		}
		if got := again(who, by); got != full {
			t.Errorf("at its host: %s", got)
		}
	}
	for by, want := range map[string]string{"a": "https://a.example", "c": "host_c"} {
		if got := again(b, by); got != `{"keyId":"key_1","secretAt":"`+want+`","secretOmitted":true}` {
			t.Errorf("at another host: %s", got)
		}
	}
	there.Store(&[]string{"b"})
	if got := again(b, "a"); got != omitted {
		t.Errorf("of a host that is gone: %s", got)
	}
	there.Store(&[]string{"a", "b"})
	passed.Store(int64(access.SealLife))
	if got := again(b, "a"); got != omitted {
		t.Errorf("later: %s", got)
	}
}
