package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	sender "github.com/sluicehost/sluice/host/destination/webhook"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

var kind = sender.Kind{Courier: webhook.NewCourier(webhook.Options{AllowLoopback: true, Version: "1"})}

const secret = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="

func TestMain(m *testing.M) {
	destinationtest.Child(kind)
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) { destinationtest.RunAtLeastOnce(t, place) }

func TestKill(t *testing.T) { destinationtest.Kill(t, place(t), destinationtest.Kills(30)) }

func place(t *testing.T) destinationtest.Place {
	r := newReceiver(t)
	return destinationtest.Place{Kind: kind, URL: r.url(), Marks: destinationtest.DirMarks(t.TempDir()), Rows: r.rows}
}

// A body is what arrives.
type body struct {
	Type        string
	Destination string
	Connection  string `json:"connectionId"`
	Stream      string
	Begun       time.Time
	From        uint64 `json:"fromVersion"`
	To          uint64 `json:"toVersion"`
	Records     []record
}

type record struct {
	Key         string
	Version     uint64
	CommittedAt string
	Deleted     bool
	Data        map[string]json.RawMessage
}

// A receiver keeps the highest version of each key, as docs/data.md says that a server may.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex // guards what follows
	begun  time.Time
	has    map[string]record
	bodies []body
	ids    []string
	sizes  []int

	verifier   *standard.Webhook
	signatures []string
	answer     func(w http.ResponseWriter, n int) bool // of request n from 0; false takes it
}

func newReceiver(t *testing.T) *receiver {
	v, err := standard.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t, has: map[string]record{}, verifier: v}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) url() string { return "webhook:" + r.URL + "/in?token=hunter2#" + secret }

func (r *receiver) take(w http.ResponseWriter, q *http.Request) {
	raw, err := io.ReadAll(q.Body)
	if err != nil {
		return // the host was killed
	}
	r.mu.Lock()
	r.signatures = append(r.signatures, q.Header.Get("Webhook-Signature"))
	err = r.verifier.Verify(raw, q.Header)
	r.mu.Unlock()
	var b body
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		r.t.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.bodies)
	r.bodies, r.ids, r.sizes = append(r.bodies, b), append(r.ids, q.Header.Get("Webhook-Id")), append(r.sizes, len(raw))
	if r.answer != nil && r.answer(w, n) {
		return
	}
	switch {
	case b.Type == "records.cleared" && b.Begun.Equal(r.begun), b.Type == "records.changed" && b.Begun.After(r.begun):
		r.has, r.begun = map[string]record{}, b.Begun
	}
	for _, x := range b.Records {
		if x.Version > r.has[x.Key].Version && b.Begun.Equal(r.begun) {
			r.has[x.Key] = x
		}
	}
}

// rows is what the receiver has, as destinationtest.Place wants it.
func (r *receiver) rows(t *testing.T, _ string) (out []map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.has {
		if x.Deleted {
			continue
		}
		row := map[string]string{"_key": x.Key, "_version": fmt.Sprint(x.Version), "_committed_at": x.CommittedAt}
		for name, v := range x.Data {
			var text string
			if string(v) == "null" {
				continue
			}
			if json.Unmarshal(v, &text) != nil {
				text = string(v)
			}
			row[name] = text
		}
		out = append(out, row)
	}
	return out
}

// pages is a source with fixed records.
type pages []store.Record

func (p pages) Records(_ context.Context, q store.RecordQuery) (store.RecordPage, error) {
	page := store.RecordPage{Version: uint64(len(p)), After: q.After}
	for _, r := range p {
		if r.Version > q.After && len(page.Records) < q.Limit {
			page.Records, page.After = append(page.Records, r), r.Version
		}
	}
	page.More = page.After < page.Version
	return page, nil
}

var id = destination.StreamID{Connection: "mail", Stream: "items"}

func records(n, size int) (out pages) {
	for i := range n {
		out = append(out, store.Record{Stream: "items", Key: fmt.Sprint("k", i), Version: uint64(i + 1),
			IngestedAt: time.Unix(1_700_000_000, 0),
			Data:       json.RawMessage(`{"null":null,"SELECT":"` + strings.Repeat("x", size) + "\\u0000" + `"}`)})
	}
	return out
}

// bring brings records as a host that starts does.
func bring(t *testing.T, url string, m destination.Marks, src pages) error {
	t.Helper()
	return bringBy(t, kind, url, m, src)
}

func bringBy(t *testing.T, k sender.Kind, url string, m destination.Marks, src pages) error {
	t.Helper()
	s, err := k.Open(t.Context(), url, destination.Owner{Host: "h", Destination: "d", Marks: m})
	if err != nil {
		return err
	}
	defer s.Close()
	holdings, err := s.Holdings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var have *destination.Holding
	if h, ok := holdings[id]; ok {
		have = &h
	}
	return destination.Bring(t.Context(), src, s,
		destination.Wanted{StreamID: id, Mode: destination.Current, Last: uint64(len(src))}, have, func(int) {})
}

// Bodies are bounded, and follow each other without a gap; a record comes as it is stored,
// and one that is larger than a body comes alone.
func TestBounded(t *testing.T) {
	r, m := newReceiver(t), destinationtest.DirMarks(t.TempDir())
	src := append(records(1200, 10),
		store.Record{Stream: "items", Key: "big", Version: 1201,
			Data: json.RawMessage(`{"x":"` + strings.Repeat("y", 3<<20) + `"}`)})
	src = append(src, store.Record{Stream: "items", Key: "k0", Version: 1202, Deleted: true})
	if err := bring(t, r.url(), m, src); err != nil {
		t.Fatal(err)
	}
	after := uint64(0)
	for i, b := range r.bodies {
		if b.From != after || b.To <= after || len(b.Records) > 500 || r.sizes[i] > 1<<20+1<<16 && len(b.Records) > 1 ||
			b.Destination != "d" || b.Connection != "mail" || b.Stream != "items" {
			t.Errorf("%d: %s %d..%d, %d records, %d bytes", i, b.Destination, b.From, b.To, len(b.Records), r.sizes[i])
		}
		after = b.To
	}
	if len(r.bodies) != 5 || after != 1202 || len(r.has) != 1201 || !r.has["k0"].Deleted ||
		string(r.has["k1"].Data["null"]) != "null" {
		t.Errorf("%d bodies up to %d, %d keys, %v", len(r.bodies), after, len(r.has), r.has["k0"])
	}
	if err := bring(t, r.url(), m, src); err != nil || len(r.bodies) != 5 {
		t.Errorf("nothing new: %v, %d bodies", err, len(r.bodies))
	}
}

// A server that refuses, redirects or breaks off gets the same batch again under the same
// id, what it took before is not sent again, and the failure is one sentence.
func TestRefused(t *testing.T) {
	for want, answer := range map[string]func(http.ResponseWriter){
		"answered 503 Service Unavailable":                                 func(w http.ResponseWriter) { w.WriteHeader(503) },
		"answered 413":                                                     func(w http.ResponseWriter) { w.WriteHeader(413) },
		"does not take what is signed with this secret":                    func(w http.ResponseWriter) { w.WriteHeader(401) },
		"a redirect; name the address that it leads to":                    func(w http.ResponseWriter) { w.Header().Set("Location", "/other"); w.WriteHeader(307) },
		"the server did not take a batch: the connection ended without an": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		r, m := newReceiver(t), destinationtest.DirMarks(t.TempDir())
		r.answer = func(w http.ResponseWriter, n int) bool {
			if n == 1 {
				answer(w)
			}
			return n == 1
		}
		src := records(700, 10)
		if err := bring(t, r.url(), m, src); err == nil || !strings.Contains(err.Error(), want) ||
			strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
		if err := bring(t, r.url(), m, src); err != nil {
			t.Fatal(err)
		}
		if len(r.ids) != 3 || r.ids[1] != r.ids[2] || r.ids[0] == r.ids[1] || len(r.has) != 700 {
			t.Errorf("%v, %d keys", r.ids, len(r.has))
		}
	}
}

// A host that is killed after the server took a batch, and before the mark is kept, sends
// it once more under the same id. Sent anew it has another.
func TestTwice(t *testing.T) {
	r, m := newReceiver(t), destinationtest.DirMarks(t.TempDir())
	src := records(3, 1)
	if err := bring(t, r.url(), m, src[:2]); err != nil {
		t.Fatal(err)
	}
	kept, err := m.Marks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := bring(t, r.url(), m, src); err != nil {
			t.Fatal(err)
		}
		if err := m.Mark(t.Context(), id, kept[id]); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.ids) != 3 || r.ids[1] != r.ids[2] {
		t.Errorf("%v", r.ids)
	}
	s, err := kind.Open(t.Context(), r.url(), destination.Owner{Host: "h", Destination: "d", Marks: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := bring(t, r.url(), m, src[:2]); err != nil {
		t.Fatal(err)
	}
	if len(r.ids) != 5 || slices.Contains(r.ids[:4], r.ids[4]) || r.bodies[3].Type != "records.cleared" ||
		!r.bodies[3].Begun.Equal(r.bodies[0].Begun) || len(r.has) != 2 {
		t.Errorf("%v %+v", r.ids, r.bodies[3:])
	}
}

// A host that was stopped until another one may feed the destination sends nothing more, and goes on
// once it is heard of.
func TestStopped(t *testing.T) {
	r, m := newReceiver(t), destinationtest.DirMarks(t.TempDir())
	var silent error
	k := sender.Kind{Courier: webhook.NewCourier(webhook.Options{AllowLoopback: true,
		Alive: func() error { return silent }})}
	r.answer = func(http.ResponseWriter, int) bool { silent = store.ErrSilent; return false }
	src := records(700, 10) // two batches
	if err := bringBy(t, k, r.url(), m, src); !errors.Is(err, store.ErrSilent) || len(r.bodies) != 1 {
		t.Errorf("%d batches of a host that may have been removed: %v", len(r.bodies), err)
	}
	silent, r.answer = nil, nil
	if err := bringBy(t, k, r.url(), m, src); err != nil || len(r.bodies) != 2 || len(r.has) != 700 {
		t.Errorf("heard of again: %d batches, %d keys, %v", len(r.bodies), len(r.has), err)
	}
}

// Two secrets sign each batch, so that a server can change its own.
func TestSecrets(t *testing.T) {
	r, m := newReceiver(t), destinationtest.DirMarks(t.TempDir())
	url, _, _ := strings.Cut(r.url(), "#")
	if err := bring(t, url+"#another-secret,"+secret, m, records(1, 1)); err != nil || len(r.has) != 1 {
		t.Error(err)
	}
}

// A secret that was replaced signs until its time, and no longer.
func TestRotate(t *testing.T) {
	now := time.Now()
	r, m := newReceiver(t), destinationtest.DirMarks(t.TempDir())
	rotate := func(url, secret string, at, until time.Time) string {
		t.Helper()
		next, err := kind.Rotate(url, secret, at, until)
		if err != nil {
			t.Fatal(err)
		}
		if shown, err := kind.Check(next, ""); err != nil || strings.Contains(shown, secret) || strings.Contains(shown, "#") {
			t.Errorf("%s %v", shown, err)
		}
		return next
	}
	next := rotate(r.url(), "another-secret", now, now.Add(time.Hour))
	if err := bring(t, next, m, records(1, 1)); err != nil || len(r.has) != 1 { // the receiver knows the old one
		t.Error(err)
	}
	over := rotate(r.url(), "another-secret", now.Add(-2*time.Hour), now.Add(-time.Hour))
	if s, err := standard.NewWebhookRaw([]byte("another-secret")); err == nil {
		r.verifier = s
	}
	if err := bring(t, over, m, records(2, 1)); err != nil || len(r.has) != 2 || len(r.signatures) != 2 ||
		strings.Contains(r.signatures[1], " ") || !strings.Contains(r.signatures[0], " ") {
		t.Errorf("%v %q", err, r.signatures)
	}
	if gone := rotate(next, "third-secret", now.Add(2*time.Hour), now.Add(3*time.Hour)); strings.Contains(gone, secret) ||
		!strings.Contains(gone, "another-secret") {
		t.Errorf("%s keeps a secret that is over", gone)
	}
	if same := rotate(rotate(r.url(), "another-secret", now, now.Add(time.Hour)), "another-secret", now,
		now.Add(time.Hour)); strings.Count(same, "another-secret") != 1 {
		t.Errorf("said twice: %s", same)
	}
	url := r.url()
	for n := range 4 {
		url = rotate(url, fmt.Sprint("the secret of number ", n), now, now.Add(time.Hour))
	}
	if _, err := kind.Rotate(url, "one too many", now, now.Add(time.Hour)); err == nil ||
		!strings.Contains(err.Error(), "4 secrets of before still sign") {
		t.Error(err)
	}
	for _, bad := range []string{"with,comma", "with#hash", "until=2026-01-01T00:00:00Z"} {
		if _, err := kind.Rotate(r.url(), bad, now, now.Add(time.Hour)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// What no batch is ever sent to.
func TestAddresses(t *testing.T) {
	public := sender.Kind{Courier: webhook.NewCourier(webhook.Options{Forbidden: func(a netip.Addr) string {
		if a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
			return "private"
		}
		return ""
	}, Resolver: names{"inside.example": "10.0.0.1", "meta.example": "169.254.169.254", "out.example": "192.0.2.1"}})}
	for url, want := range map[string]string{
		"webhook:https://out.example/in":                              "want # and a secret",
		"webhook:https://out.example/in#short":                        "the secret is shorter than 8 bytes",
		"webhook:https://out.example/in#" + secret + ",":              "the secret is shorter",
		"webhook:http://out.example/in#" + secret:                     "must begin with https://",
		"webhook:https://u:p@out.example/#" + secret:                  "must not hold a user name",
		"webhook:out.example#" + secret:                               "is not a URL of a server",
		"webhook:#" + secret:                                          "is not a URL of a server",
		"webhook:https://" + strings.Repeat("x", 3000) + "#" + secret: "is longer than",
	} {
		if shown, err := public.Check(url, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %s, %v", url, shown, err)
		}
	}
	shown, err := public.Check("webhook:https://out.example/in?token=hunter2#"+secret, "")
	if err != nil || shown != "webhook:https://out.example/in?…" {
		t.Errorf("%s, %v", shown, err)
	}
	for _, name := range []string{"inside.example", "meta.example", "none.example", "127.0.0.1", "[::ffff:10.0.0.1]"} {
		_, err := public.Open(t.Context(), "webhook:https://"+name+"/in#"+secret,
			destination.Owner{Marks: destinationtest.DirMarks(t.TempDir())})
		if err == nil || !strings.Contains(err.Error(),
			"names no server that deliveries may go to: it is not found, or not at a public address") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// names resolves.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a, err := netip.ParseAddr(n[strings.TrimSuffix(host, ".")])
	return []netip.Addr{a}, err
}
