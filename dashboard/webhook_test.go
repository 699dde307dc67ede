package dashboard_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// signing keeps the secrets of webhooks in the clear.
type signing map[string][]byte

func (s signing) Set(id string, secret []byte) error { s[id] = slices.Clone(secret); return nil }
func (s signing) Remove(id string) error             { delete(s, id); return nil }
func (s signing) IDs() ([]string, error)             { return slices.Collect(maps.Keys(s)), nil }

func (s signing) Get(id string) ([]byte, error) {
	if s[id] == nil {
		return nil, errors.New("there is no such secret")
	}
	return s[id], nil
}

// A webhook is made, tested, delivered again and signed anew on the page, which says
// what went wrong and nothing of what its server answered.
func TestWebhookPage(t *testing.T) {
	s := open(t)
	var status atomic.Int64
	status.Store(503)
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte("the-private-page"))
	}))
	defer at.Close()
	made := s.post("/ui/webhooks", map[string][]string{"url": {at.URL}, "when": {"ends"}})
	if made.status != 200 || !strings.Contains(made.body, "whsec_") {
		t.Fatalf("%d %s", made.status, made.body)
	}
	page := s.page("/ui/settings")
	one := regexp.MustCompile(`/ui/webhooks/whk_[0-9A-Z]+`).FindString(page)
	if one == "" || strings.Contains(page, "Last error") || strings.Contains(page, "Last delivery") {
		t.Fatalf("%s", page)
	}
	if a := s.post(one+"/test", map[string][]string{}); a.status != 204 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	page = s.page("/ui/settings")
	for _, want := range []string{"Last error", "Last delivery", "answered 503 Service Unavailable", "webhook.test"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	status.Store(204)
	again := regexp.MustCompile(`/ui/webhooks/whk_[0-9A-Z]+/deliveries/del_[0-9A-Z]+/redeliver`).FindString(page)
	if a := s.post(again, map[string][]string{}); a.status != 204 {
		t.Fatalf("%s: %d %s", again, a.status, a.body)
	}
	rotated := s.post(one+"/rotate", map[string][]string{})
	if rotated.status != 200 || !strings.Contains(rotated.body, "whsec_") ||
		!strings.Contains(rotated.body, "the old one too") {
		t.Errorf("%d %s", rotated.status, rotated.body)
	}
	page = s.page("/ui/settings")
	if !strings.Contains(page, "delivered (204)") || !strings.Contains(page, "signed with the old secret too") ||
		strings.Contains(page, "private-page") || strings.Contains(page, "whsec_") {
		t.Errorf("%s", page)
	}
	for _, path := range []string{"/ui/webhooks/whk_none/test", "/ui/webhooks/whk_none/rotate",
		one + "/deliveries/del_none/redeliver"} {
		if a := s.post(path, map[string][]string{}); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := s.post(one+"/delete", map[string][]string{}); a.status != 204 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
