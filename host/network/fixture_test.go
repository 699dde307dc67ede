package network_test

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/egress"
)

// quick is a pace that holds nobody back.
func quick() *egress.RateLimiter {
	return egress.NewRateLimiter(egress.RateLimit{PerSecond: 1e6, Burst: 1e6, AtOnce: 100, LongestStop: time.Minute})
}

func client(t *testing.T, o egress.Options, entries ...egress.Entry) *egress.Client {
	t.Helper()
	o.Policy = egress.NewPolicy(entries...)
	if o.RateLimiter == nil {
		o.RateLimiter = quick()
	}
	c, err := egress.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// entry reads an entry; private ones lead to this machine.
func entry(t *testing.T, text string, private bool) egress.Entry {
	t.Helper()
	e, err := egress.ParseEntry(text)
	if err != nil {
		t.Fatal(err)
	}
	e.Private = private
	return e
}

// serve starts a server of this machine and returns the entry that reaches it.
func serve(t *testing.T, h http.HandlerFunc) (base string, e egress.Entry) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, entry(t, s.URL, true)
}

// frame is a request as guests send it.
func frame(head string, body string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	return append(append(b, head...), body...)
}
