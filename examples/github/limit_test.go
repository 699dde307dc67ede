//go:build !wasip1

package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

// limits are the ways in which GitHub says that it is enough, for n seconds.
var limits = map[string]func(n int) func(http.ResponseWriter, *http.Request) bool{
	"primary": func(n int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			reset := strconv.FormatInt(time.Now().Unix()+int64(n), 10)
			return says(403, `{"message":"API rate limit exceeded"}`, "X-Ratelimit-Remaining", "0",
				"X-Ratelimit-Reset", reset)(w, r)
		}
	},
	"primary, 429": func(n int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			reset := strconv.FormatInt(time.Now().Unix()+int64(n), 10)
			return says(429, `{}`, "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", reset)(w, r)
		}
	},
	"secondary": func(n int) func(http.ResponseWriter, *http.Request) bool {
		return says(403, `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
			"Retry-After", strconv.Itoa(n))
	},
	"secondary of another documentation": func(n int) func(http.ResponseWriter, *http.Request) bool {
		return says(403, `{"message":"secondary rate limit"}`, "Retry-After", strconv.Itoa(n))
	},
	"429": func(n int) func(http.ResponseWriter, *http.Request) bool {
		return says(429, ``, "Retry-After", strconv.Itoa(n))
	},
	"overloaded": func(n int) func(http.ResponseWriter, *http.Request) bool {
		return says(503, ``, "Retry-After", strconv.Itoa(n))
	},
}

// A short limit is waited for; a run ends at a long one, says until when, and
// keeps what is done: the stream that it struck is named, so the failure is a
// certified one.
func TestLimits(t *testing.T) {
	for name, limited := range limits {
		t.Run(name, func(t *testing.T) {
			waiting(t, func(t *testing.T) {
				f := recorded(t)
				f.instead[tide+"pulls"] = times(1, limited(20))
				began := time.Now()
				got := f.run(t, f.options(), nil)
				if diff := cmp.Diff(everything, changes(got)); diff != "" || len(got.Skips) > 0 {
					t.Error(diff, got.Skips)
				}
				if took := time.Since(began); took < 20*time.Second || took > 30*time.Second {
					t.Errorf("it took %s", took)
				}

				f.instead[tide+"pulls"] = limited(1800)
				got, err := failed(t, f.options())
				until := time.Now().Add(30 * time.Minute).UTC().Format("2006-01-02T15:04")
				if err.Code != guest.CodeStreamFailed || err.Retryable == nil || !*err.Retryable ||
					!strings.Contains(err.Message, until) {
					t.Errorf("%+v, want %s", err, until)
				}
				reasons := map[string]string{"pull_requests": guest.CodeStreamFailed, "comments": "rate_limited",
					"review_comments": "rate_limited", "releases": "rate_limited"}
				if diff := cmp.Diff(reasons, skips(got)); diff != "" {
					t.Error(diff)
				}
				if len(got.States) != 3 || got.States["issues"] == nil {
					t.Errorf("states %v", got.States)
				}
				if n := len(f.asked); f.asked[n-1] != strings.Join([]string{tide + "pulls", strings.Fields(f.asked[n-1])[1]}, " ") {
					t.Errorf("asked on: %v", f.asked)
				}
			})
		})
	}
}

// A limit that never ends is waited for a few times only.
func TestEndlessLimit(t *testing.T) {
	waiting(t, func(t *testing.T) {
		f := recorded(t)
		f.instead[tide+"issues"] = says(429, ``, "Retry-After", "0")
		if _, err := failed(t, f.options()); err.Code != guest.CodeStreamFailed {
			t.Errorf("%+v", err)
		}
		n := 0
		for _, a := range f.asked {
			if strings.HasPrefix(a, tide+"issues 429") {
				n++
			}
		}
		if n != maxTries+1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A run whose owner cancels it while it waits ends soon.
func TestCancelWhileWaiting(t *testing.T) {
	waiting(t, func(t *testing.T) {
		f := recorded(t)
		asked := false
		f.instead[tide+"issues"] = func(w http.ResponseWriter, r *http.Request) bool {
			asked = true
			return says(429, ``, "Retry-After", "50")(w, r)
		}
		o, began := f.options(), time.Now()
		o.Cancel = func(abi.Call) bool { return asked && time.Since(began) > 12*time.Second }
		if got := guesttest.Run(t, connector, o); got.Status != abi.Cancelled || time.Since(began) > 20*time.Second {
			t.Errorf("%s after %s", got.Status, time.Since(began))
		}
	})
}

// A run with few requests stops in time; those after it go on until all is had.
func TestRequestLimit(t *testing.T) {
	f := recorded(t)
	f.lists[tide+"issues"] = many(450, 1)
	o := f.options()
	o.Config = object{"max_requests": 4}
	o.Scope = `{"streams":[{"name":"issues"},{"name":"comments"},{"name":"stars"}]}`
	have := map[string]bool{}
	var last *guesttest.Result
	for runs := 1; ; runs++ {
		last = f.run(t, o, last)
		if len(f.asked) > 20 {
			t.Fatalf("asked %v", f.asked)
		}
		for stream, records := range changes(last) {
			for _, k := range records {
				have[stream+" "+k] = true
			}
		}
		if len(last.Skips) == 0 && runs < 3 {
			t.Fatalf("all was had in %d runs", runs)
		}
		if len(last.Skips) == 0 {
			break
		}
		if s := last.Skips[0]; s.Reason != "request_limit" || s.Continuation == nil ||
			s.RecoveryHint.Action != guest.RetryByRuntime {
			t.Fatalf("%+v", s)
		}
		if runs > 10 {
			t.Fatal("there is always more")
		}
	}
	if len(have) != 450+2+2 {
		t.Errorf("%d records", len(have))
	}
}
