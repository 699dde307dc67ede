package egress_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

// Retry-After closes an origin, and a caller who cannot wait is told.
func TestRateLimiter(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1000000000")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	free, freeEntry := serve(t, func(http.ResponseWriter, *http.Request) {})
	c := client(t, egress.Options{}, e, freeEntry)
	r, err := get(c, base)
	if err != nil || r.Status != 429 {
		t.Fatal(r, err)
	}
	r.Body.Close()
	_, err = c.Do(t.Context(), &egress.Request{Method: "GET", URL: base, Redirect: "follow", Wait: 50 * time.Millisecond})
	if e := failure(t, err); e.Errno != abi.ERATE || e.RetryAfter < 50_000 || e.RetryAfter > 70_000 {
		t.Errorf("%+v, want to be told to come back in a minute", e)
	}
	if r, err = get(c, free); err != nil {
		t.Fatalf("another origin waits as well: %v", err)
	}
	r.Body.Close()
}
