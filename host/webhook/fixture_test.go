package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/webhook"
)

const target = "https://hooks.example/in"

// names resolve from a table.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, a := range n[strings.TrimSuffix(host, ".")] {
		out = append(out, netip.MustParseAddr(a))
	}
	if len(out) == 0 {
		return nil, errors.New("no such host")
	}
	return out, nil
}

// forbidden stands for the table of the network room.
func forbidden(a netip.Addr) string {
	if a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
		return "not a public address"
	}
	return ""
}

// A receiver is the server behind a URL.
type receiver struct {
	mu     sync.Mutex // guards what follows
	sent   []webhook.Sent
	answer func(webhook.Sent) int // nil: 204
}

// answers has what comes from now on answered by f.
func (r *receiver) answers(f func(webhook.Sent) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receiver) post(_ context.Context, s webhook.Sent) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, s)
	if r.answer == nil {
		return http.StatusNoContent, nil
	}
	return r.answer(s), nil
}

// got lists RUN/SEQUENCE TYPE of what arrived, and forgets it.
func (r *receiver) got(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.sent {
		var b struct {
			Type string
			Data struct {
				RunID    string
				Sequence int
				Type     string
			}
		}
		if err := json.Unmarshal(s.Body, &b); err != nil {
			t.Fatal(err)
		}
		if b.Type != b.Data.Type {
			t.Errorf("type %s of an event %s", b.Type, b.Data.Type)
		}
		out = append(out, b.Data.RunID+" "+b.Type)
	}
	r.sent = nil
	return out
}

// inOrder sorts by run and leaves the order within each.
func inOrder(got []string) []string {
	slices.SortStableFunc(got,
		func(a, b string) int { return strings.Compare(a[:strings.Index(a, " ")], b[:strings.Index(b, " ")]) })
	return got
}

func options(m *memory, r *receiver) webhook.Options {
	return webhook.Options{
		Store: m, Secrets: m.secrets, Forbidden: forbidden, Resolver: names{"hooks.example": {"93.184.216.34"}},
	}.Post(r.post)
}

func open(t *testing.T, o webhook.Options) *webhook.Hooks {
	t.Helper()
	h, err := webhook.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func create(t *testing.T, h *webhook.Hooks, d webhook.Definition) webhook.Webhook {
	t.Helper()
	if d.URL == "" {
		d.URL = target
	}
	w, _, err := h.Create(t.Context(), "owner", d, nil)
	if err != nil {
		t.Fatal(err)
	}
	settle()
	return w
}

func closed(t *testing.T, h *webhook.Hooks) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// settle lets one scan and what follows from it happen.
func settle() {
	time.Sleep(time.Second) // of the bubble
	synctest.Wait()
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
