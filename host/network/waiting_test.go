package network_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// handle stands for a sealed value.
const handle = "sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa"

// A session that is closed while its request waits, for a turn with
// an origin or for a token, ends at once, and so does one whose call is ended.
func TestClosedWhileWaiting(t *testing.T) {
	base, e := serve(t, func(http.ResponseWriter, *http.Request) {})
	request := frame(`{"method":"GET","url":"`+base+`","headers":[["Authorization","`+handle+`"]],"wait_ms":3600000}`, "")
	for name, wait := range map[string]func(o *egress.Options, seals *egress.Seals){
		"turn": func(o *egress.Options, _ *egress.Seals) {
			o.ConnectorLimiter = egress.NewRateLimiter(egress.RateLimit{PerSecond: 0.001, Burst: 1, AtOnce: 1,
				LongestStop: time.Minute})
		},
		"token": func(_ *egress.Options, seals *egress.Seals) {
			n := 0
			seals.AddSource("token", handle, func(ctx context.Context, _ string) (string, error) {
				if n++; n == 1 {
					return "a-token", nil
				}
				<-ctx.Done()
				return "", ctx.Err()
			}, []abi.Destination{{Origin: base, Placements: []string{"header:authorization"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, by := range []string{"close", "cancel"} {
				seals := &egress.Seals{}
				seals.Add("token", handle, "a-token", nil,
					[]abi.Destination{{Origin: base, Placements: []string{"header:authorization"}}})
				shared := quick()
				o := egress.Options{Seals: seals, RateLimiter: shared}
				wait(&o, seals)
				s := network.NewSession(client(t, o, e))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var told sync.WaitGroup
				s.OnRateWait(func(string, time.Time) { time.Sleep(10 * time.Millisecond) }) // a loop with other things to do
				if reply, errno := s.Handle(ctx, abi.CallNetworkRequest, request); errno != abi.OK {
					t.Fatal(string(reply))
				}
				told.Go(func() {
					if reply, errno := s.Handle(ctx, abi.CallNetworkRequest, request); errno != abi.ECANCELED {
						t.Errorf("%s by %s: %s %v", name, by, reply, errno)
					}
				})
				time.Sleep(50 * time.Millisecond)
				if by == "cancel" {
					cancel()
				} else if err := s.Close(); err != nil {
					t.Error(err)
				}
				told.Wait()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
