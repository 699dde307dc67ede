//go:build !wasip1

package guest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A crowd is a host that answers requests in the reverse of their order, and only
// when no more come.
type crowd struct {
	calls, most int // exchanges; requests on their way
	away        []abi.ExchangeRequest
	handles     int // requests that may be on their way; 0 for any number
	fails       error
	silent      bool
}

func (c *crowd) Call(call abi.Call, request []byte) ([]byte, error) {
	switch call {
	case abi.CallStart:
		return []byte(`{"run_id":"r","connection_id":"c","connector_id":"c","collection_mode":"full_refresh","scope":{"streams":[]},
		 "state":null,"bindings":{},"detail_gaps":[],"abi":{"major":1,"minor":1}}`), nil
	case abi.CallNetworkExchange:
		return c.exchange(request)
	}
	return nil, nil
}

func (c *crowd) exchange(request []byte) (reply []byte, err error) {
	c.calls++
	_, asked, err := abi.ParseExchange(request)
	if err != nil || c.fails != nil || c.silent {
		return nil, errors.Join(err, c.fails)
	}
	for _, a := range asked {
		if c.handles > 0 && len(c.away) == c.handles {
			reply = abi.ExchangeResponse{ID: a.ID, Errno: abi.ETOOBIG,
				Reply: []byte(`{"code":"too_many_handles","message":"close some"}`)}.Append(reply)
			continue
		}
		a.Frame = append([]byte(nil), a.Frame...)
		c.away = append(c.away, a)
	}
	if c.most = max(c.most, len(c.away)); len(asked) > 0 && len(reply) == 0 && len(c.away) < 16 {
		return c.land(1), nil
	}
	if reply != nil {
		return reply, nil
	}
	return c.land(len(c.away)), nil
}

func (c *crowd) land(n int) (reply []byte) {
	for ; n > 0; n-- {
		last := c.away[len(c.away)-1]
		c.away = c.away[:len(c.away)-1]
		a := abi.ExchangeResponse{ID: last.ID, Reply: append([]byte("re: "), last.Frame...)}
		if string(last.Frame) == "13" {
			a = abi.ExchangeResponse{ID: last.ID, Errno: abi.EDENIED, Reply: []byte(`{"code":"host_denied","message":"no"}`)}
		}
		reply = a.Append(reply)
	}
	return reply
}

func (c *crowd) Read(int32, []byte) (int, error) { return 0, nil }
func (c *crowd) Close(int32) error               { return nil }

// ask makes n requests at once and gives each answer to got.
func (c *crowd) ask(t *testing.T, n int, got func(i int, reply string, err error)) {
	t.Helper()
	collect := func(_ context.Context, run *guest.Run) error {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				reply, err := run.NetworkRequest(fmt.Append(nil, i))
				got(i, string(reply), err)
			})
		}
		all.Wait()
		return nil
	}
	guest.Drive(t.Context(), guest.Connector{Collect: collect}, c)
}

// TestRequestsAtOnce: goroutines that make requests have them on their way
// together, and each gets its own answer, whatever the host can take at once.
func TestRequestsAtOnce(t *testing.T) {
	for _, handles := range []int{0, 1, 5} {
		c := &crowd{handles: handles}
		c.ask(t, 200, func(i int, reply string, err error) {
			switch {
			case i == 13 && !errors.Is(err, abi.EDENIED):
				t.Errorf("%d: %v", i, err)
			case i != 13 && (err != nil || reply != fmt.Sprint("re: ", i)):
				t.Errorf("%d: %q, %v", i, reply, err)
			}
		})
		if handles == 0 && (c.most < 2 || c.most > 16) {
			t.Errorf("%d were on their way at once", c.most)
		}
		if len(c.away) > 0 {
			t.Errorf("%d are still on their way", len(c.away))
		}
	}
}

// TestRequestsFail: what ends the call ends every request.
func TestRequestsFail(t *testing.T) {
	for name, c := range map[string]*crowd{
		"cancelled": {fails: guest.NewError(abi.ECANCELED, "run_cancelled", "over")},
		"silent":    {silent: true},
	} {
		n := 0
		var mu sync.Mutex
		c.ask(t, 20, func(i int, _ string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if n++; err == nil {
				t.Errorf("%s: %d has an answer", name, i)
			}
		})
		if n != 20 {
			t.Errorf("%s: %d came back", name, n)
		}
	}
}
