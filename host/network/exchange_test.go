package network_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// exchange makes one call with requests whose ids are from first on.
func exchange(ctx context.Context, t *testing.T, s *network.Session, least, first uint32,
	frames ...[]byte) (map[uint32]abi.ExchangeResponse, abi.Errno) {
	t.Helper()
	b := abi.AppendLeast(nil, least)
	for i, f := range frames {
		b = abi.ExchangeRequest{ID: first + uint32(i), Frame: f}.Append(b)
	}
	reply, errno := s.Handle(ctx, abi.CallNetworkExchange, b)
	got := map[uint32]abi.ExchangeResponse{}
	for errno == abi.OK && len(reply) > 0 {
		a, rest, err := abi.NextAnswer(reply)
		if err != nil {
			t.Fatal(err)
		}
		got[a.ID], reply = a, rest
	}
	return got, errno
}

func getFrame(address string) []byte {
	return frame(`{"method":"GET","url":"`+address+`","inline_bytes":1000}`, "")
}

// TestExchange: requests of one call are on their way together, a call returns
// with as many answers as it asked for, and the others come with later ones.
func TestExchange(t *testing.T) {
	var met sync.WaitGroup
	met.Add(3)
	hold := make(chan struct{})
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			<-hold
		} else {
			met.Done()
			met.Wait() // for the other two
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	got, errno := exchange(t.Context(), t, s, 3, 1, getFrame(base+"/a"), getFrame(base+"/b"), getFrame(base+"/hold"),
		getFrame(base+"/c"))
	if errno != abi.OK || len(got) != 3 {
		t.Fatalf("%v: %v", errno, got)
	}
	for id, path := range map[uint32]string{1: "/a", 2: "/b", 4: "/c"} {
		if a := got[id]; a.Errno != abi.OK || !strings.HasSuffix(string(a.Reply), path) {
			t.Errorf("%d: %v %q", id, a.Errno, a.Reply)
		}
	}
	if got, errno := exchange(t.Context(), t, s, 0, 0); errno != abi.OK || len(got) != 0 {
		t.Errorf("without waiting: %v, %v", errno, got)
	}
	close(hold)
	if got, errno := exchange(t.Context(), t, s, 9, 0); errno != abi.OK || len(got) != 1 ||
		!strings.HasSuffix(string(got[3].Reply), "/hold") {
		t.Errorf("%v: %v", errno, got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestExchangeRefusals: a refused request is an answer, and a malformed exchange
// is no violation.
func TestExchangeRefusals(t *testing.T) {
	base, e := serve(t, func(http.ResponseWriter, *http.Request) {})
	s := network.NewSession(client(t, egress.Options{}, e))
	got, errno := exchange(t.Context(), t, s, 3, 1, getFrame("https://elsewhere.example/"), []byte("??"), getFrame(base))
	if errno != abi.OK || got[1].Errno != abi.EDENIED || got[2].Errno != abi.EINVAL || got[3].Errno != abi.OK {
		t.Errorf("%v: %v", errno, got)
	}
	if !strings.Contains(string(got[1].Reply), `"code":"host_denied"`) {
		t.Errorf("%s", got[1].Reply)
	}
	if text, errno := s.Handle(t.Context(), abi.CallNetworkExchange, []byte("?")); errno != abi.EINVAL {
		t.Errorf("%v %s", errno, text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestExchangeIsBounded: requests on their way have a place among the handles,
// and together no more bytes than one may have.
func TestExchangeIsBounded(t *testing.T) {
	hold := make(chan struct{})
	base, e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-hold
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	l := egress.DefaultLimits()
	large := frame(`{"method":"POST","url":"`+base+`"}`, strings.Repeat("x", int(l.RequestBody)))
	if got, errno := exchange(t.Context(), t, s, 1, 1, large, large); errno != abi.OK || len(got) != 1 ||
		got[2].Errno != abi.ETOOBIG {
		t.Errorf("%v: %v", errno, got)
	}
	var all [][]byte
	for range abi.MaxHandles - 1 {
		all = append(all, getFrame(base))
	}
	if got, errno := exchange(t.Context(), t, s, 0, 3, all...); errno != abi.OK || len(got) != 0 {
		t.Errorf("%v: %v", errno, got)
	}
	if got, errno := exchange(t.Context(), t, s, 1, 100, getFrame(base)); errno != abi.OK ||
		!strings.Contains(string(got[100].Reply), "too_many_handles") {
		t.Errorf("%v: %v", errno, got)
	}
	close(hold)
	if got, errno := exchange(t.Context(), t, s, abi.MaxHandles, 0); errno != abi.OK || len(got) != abi.MaxHandles {
		t.Errorf("%v: %d answers", errno, len(got))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestExchangeEnds: what ends a run ends the requests that are on their way, and
// the call that waits for them.
func TestExchangeEnds(t *testing.T) {
	for _, by := range []string{"call", "abort", "close"} {
		t.Run(by, func(t *testing.T) {
			arrived, left := make(chan bool, 1), make(chan bool, 1)
			base, e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				arrived <- true
				<-r.Context().Done()
				left <- true
			})
			s := network.NewSession(client(t, egress.Options{}, e))
			if _, errno := exchange(t.Context(), t, s, 0, 1, getFrame(base)); errno != abi.OK {
				t.Fatal(errno)
			}
			<-arrived
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if got, errno := exchange(ctx, t, s, 1, 2); errno != abi.ECANCELED && got[1].Errno != abi.ECANCELED {
					t.Errorf("%v: %v", errno, got)
				}
			})
			switch by {
			case "call":
				cancel()
			case "abort":
				s.Abort()
			case "close":
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			waiting.Wait()
			<-left
			if got, errno := exchange(t.Context(), t, s, 9, 3, getFrame(base)); errno != abi.OK ||
				got[3].Errno != abi.ECANCELED {
				t.Errorf("afterwards: %v: %v", errno, got)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExchangeTurns: a wait for a turn is told of while nothing else goes on, and
// its end too.
func TestExchangeTurns(t *testing.T) {
	t.Parallel()
	base, e := serve(t, func(http.ResponseWriter, *http.Request) {})
	own := egress.NewRateLimiter(egress.RateLimit{PerSecond: 0.5, Burst: 1, AtOnce: 4, LongestStop: time.Minute})
	s := network.NewSession(client(t, egress.Options{ConnectorLimiter: own}, e))
	var told []string
	s.OnRateWait(func(origin string, until time.Time) { told = append(told, fmt.Sprint(origin == base, until.IsZero())) })
	if got, errno := exchange(t.Context(), t, s, 2, 1, getFrame(base), getFrame(base)); errno != abi.OK || len(got) != 2 {
		t.Errorf("%v: %v", errno, got)
	}
	if text := strings.Join(told, ", "); text != "true false, false true" {
		t.Errorf("told %s", text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestExchangeRecorded: requests that are recorded go one after the other, so
// that a replay of the same calls has the same answers.
func TestExchangeRecorded(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/0" {
			time.Sleep(50 * time.Millisecond) // the others would overtake it
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	do := func(s *network.Session) {
		var all [][]byte
		for i := range 5 {
			all = append(all, getFrame(fmt.Sprint(base, "/", i)))
		}
		got, errno := exchange(t.Context(), t, s, 1, 0, all...)
		if errno != abi.OK || len(got) != 5 {
			t.Fatalf("%v: %v", errno, got)
		}
		for i := range uint32(5) {
			if !strings.HasSuffix(string(got[i].Reply), fmt.Sprint("/", i)) {
				t.Errorf("%d: %s", i, got[i].Reply)
			}
		}
	}
	recorder := egress.NewRecorder(client(t, egress.Options{}, e))
	do(network.NewSession(recorder))
	text, _, err := recorder.Finish(egress.Header{ConnectorID: "c", Module: "m", Connection: "c", Mode: "full_refresh",
		Clock: time.UnixMilli(1e12).UTC(), Scope: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := egress.ParseRecording(text)
	if err != nil {
		t.Fatal(err)
	}
	do(network.NewSession(egress.NewReplayer(r)))
}
