package browser_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

const withSession = `{"verb":"open","session":{"probe":{"url":"https://a.example/home","expect":{"kind":"exists","target":{"selector":{"role":"main"}}}},"login_url":"https://a.example/login","timeout_seconds":60}}`

// live answers expects with what is true at the time, and remembers navigations.
func (d *desk) live(now *bool, visited *[]string) {
	d.do = func(_ context.Context, r *engine.Request) (any, *engine.Refusal) {
		if r.Verb == engine.Navigate {
			*visited = append(*visited, r.Navigate.URL)
		}
		return &engine.ExpectReply{Success: *now}, nil
	}
}

// A session that is live is not asked about.
func TestSessionLive(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	now, visited := true, []string{}
	d.live(&now, &visited)
	out := d.ok(t, withSession)
	if s := out["session"].(map[string]any); s["state"] != "live" || s["interaction_id"] != nil ||
		strings.Join(visited, " ") != "https://a.example/home" {
		t.Errorf("%v %v", s, visited)
	}
	if d.Surface().Status != "available" {
		t.Errorf("%+v", d.Surface())
	}
}

// The owner signs in, in the page that is theirs meanwhile.
func TestSessionRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		now, visited := false, []string{}
		d.live(&now, &visited)
		d.log.ask = func(ctx context.Context, message string, timeout time.Duration) (string, string, error) {
			if message != "My shop session expired. Open the browser and sign in again, then continue." ||
				timeout != time.Minute {
				t.Errorf("%q %s", message, timeout)
			}
			d.Asked("q1", "manual_action", time.Now().Add(timeout))
			if err := d.Taken(ctx); err != nil { // no verb may be in the way
				t.Error(err)
			}
			time.Sleep(10 * time.Minute) // longer than the watchdog
			now = true
			go func() {
				time.Sleep(time.Second) // a lease may outlast its question a little
				d.Released()
			}()
			d.Answered("q1")
			return "q1", "cancelled", nil // whatever its status
		}
		out := d.ok(t, withSession)
		if s := out["session"].(map[string]any); s["state"] != "recovered" || s["interaction_id"] != "q1" {
			t.Errorf("%v", s)
		}
		if strings.Join(visited, " ") != "https://a.example/home https://a.example/login https://a.example/home" ||
			len(d.log.failures()) != 0 {
			t.Errorf("%v %v", visited, d.log.failures())
		}
	})
}

// Without a session the run ends, whatever the guest does next.
func TestSessionNotLive(t *testing.T) {
	for _, interactive := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, func(_ *browser.Options, o *browser.SessionOptions) { o.Interactive = interactive })
			defer d.end(t)
			now, visited, asked := false, []string{}, 0
			d.live(&now, &visited)
			d.log.ask = func(context.Context, string, time.Duration) (string, string, error) {
				asked++
				return "q1", "success", nil
			}
			d.refused(t, withSession, "session_not_live", abi.EUNAVAIL)
			if len(d.log.failures()) != 1 || d.log.failures()[0].Code != "session_not_live" || d.log.failures()[0].Retryable ||
				d.log.failures()[0].Hint != "manual_action_required" {
				t.Errorf("%+v", d.log.failures())
			}
			if asked == 1 != interactive || d.fakes[0].closed != 1 {
				t.Errorf("asked %d times, closed %d", asked, d.fakes[0].closed)
			}
			d.refused(t, `{"verb":"snapshot"}`, "surface_not_open", abi.EINVAL)
		})
	}
}

// A browser that is lost meanwhile ends the flow, and is no missing session.
func TestSessionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		now, visited := false, []string{}
		d.live(&now, &visited)
		d.log.ask = func(ctx context.Context, _ string, _ time.Duration) (string, string, error) {
			d.fakes[0].kill()
			<-ctx.Done()
			return "q1", "cancelled", ctx.Err()
		}
		d.refused(t, withSession, "surface_lost", abi.EUNAVAIL)
		if len(d.log.failures()) != 0 || len(d.log.losses()) != 1 {
			t.Errorf("%+v %+v", d.log.failures(), d.log.losses())
		}
	})
}

// A connector that signs in by itself and falls silent.
func TestEstablishTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *browser.Options, _ *browser.SessionOptions) { o.Watchdog = 10 * time.Second })
		defer d.end(t)
		d.ok(t, `{"verb":"open","establish":true}`)
		for range 5 {
			time.Sleep(9 * time.Second)
			d.ok(t, `{"verb":"mark","phase":"email-submit"}`)
		}
		d.Asked("q", "otp", time.Time{}) // waiting for the owner is no silence
		time.Sleep(time.Hour)
		d.Answered("q")
		d.Paused(true)
		time.Sleep(time.Hour)
		d.Paused(false)
		timeout := 60.0
		d.Assisted("a", &abi.AssistanceMessage{ProgressPosture: abi.PostureRunning, ResponseObligation: abi.ObligationNone,
			TimeoutSeconds: &timeout})
		time.Sleep(69 * time.Second) // its own time-out, and one deadline
		synctest.Wait()
		if len(d.log.failures()) != 0 {
			t.Fatalf("%+v", d.log.failures())
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if len(d.log.failures()) != 1 {
			t.Fatalf("%+v", d.log.failures())
		}
		e := d.log.failures()[0]
		if e.Code != "session_establish_timeout" || !e.Retryable ||
			e.Message != "shop_session_establish_timeout: no checkpoint for 10000 ms; the last one was email-submit" {
			t.Errorf("%+v", e)
		}
		d.refused(t, `{"verb":"snapshot"}`, "surface_not_open", abi.EINVAL)
		if d.fakes[0].closed != 1 {
			t.Error("the browser is still there")
		}
	})
}

// Once a password may have been sent, nothing is tried again by itself.
func TestEstablishTripsSubmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		d.ok(t, `{"verb":"open","establish":true}`)
		if d.Spent() {
			t.Error("nothing was sent yet")
		}
		d.worker.Secrets.Submitted()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if len(d.log.failures()) != 1 || d.log.failures()[0].Retryable ||
			!strings.HasSuffix(d.log.failures()[0].Message, "<none>") {
			t.Errorf("%+v", d.log.failures())
		}
	})
}

// A session that came about was worth its password; what fails later is another
// matter.
func TestSpent(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.ok(t, `{"verb":"open","establish":true}`)
	d.worker.Secrets.Submitted()
	if !d.Spent() {
		t.Error("a password was sent, and there is no session")
	}
	d.ok(t, `{"verb":"close"}`)
	if !d.Spent() {
		t.Error("closing the browser makes no session")
	}
	d.ok(t, `{"verb":"open","establish":true}`)
	d.ok(t, `{"verb":"mark","phase":"in","done":true}`)
	if d.Spent() {
		t.Error("there is a session")
	}
}

// Done ends it.
func TestEstablishDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		d.ok(t, `{"verb":"open","establish":true}`)
		if out := d.ok(t, `{"verb":"mark","phase":"in","done":true}`); out["phase"] != "in" {
			t.Errorf("%v", out)
		}
		time.Sleep(time.Hour)
		d.ok(t, `{"verb":"snapshot"}`)
	})
}

// What an item shows of the surface, and when that changes.
func TestWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		if a := d.Probe(t.Context()); a.Reason != fleet.CodeNoSurface {
			t.Errorf("%+v", a)
		}
		d.ok(t, `{"verb":"open"}`)
		hang := func(err error) { d.fakes[0].mu.Lock(); d.fakes[0].pageErr = err; d.fakes[0].mu.Unlock() }
		d.Asked("q1", "credentials", time.Time{})
		hang(page.ErrHung)
		time.Sleep(time.Hour) // not watched
		synctest.Wait()
		if len(d.log.seen())+len(d.log.losses()) != 0 {
			t.Fatalf("credentials were watched: %v %v", d.log.seen(), d.log.losses())
		}
		d.Answered("q1")
		if a := d.Probe(t.Context()); a.Status != "unavailable" || a.Reason != fleet.CodeTimeout || a.Ref == "" ||
			a.Role != "streaming_companion" {
			t.Errorf("%+v", a)
		}
		d.Asked("q2", "manual_action", time.Time{})
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(d.log.seen())+len(d.log.losses()) != 0 || len(d.log.of(fleet.EventProbeFailed)) != 1 {
			t.Fatalf("%v %v", d.log.seen(), d.log.losses())
		}
		hang(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(d.log.seen()) != 1 || d.log.seen()[0].Status != "available" || d.log.seen()[0].Reason != "" {
			t.Fatalf("%+v", d.log.seen())
		}
		hang(page.ErrHung)
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if len(d.log.losses()) != 1 || d.log.losses()[0].Code != fleet.CodeTimeout {
			t.Fatalf("%+v", d.log.losses())
		}
		d.Answered("q2")
		d.Asked("q3", "otp", time.Time{}) // it is gone: no probe runs
		time.Sleep(time.Minute)
		if a := d.Surface(); a.Status != "unavailable" || a.Reason != fleet.CodeTimeout || len(d.log.losses()) != 1 {
			t.Errorf("%+v", a)
		}
	})
}

// A surface that did not start is told as that.
func TestNotStarted(t *testing.T) {
	d := newDesk(t, func(o *browser.Options, _ *browser.SessionOptions) {
		o.Start = func(context.Context, fleet.StartOptions) (page.Browser, error) {
			return nil, &engine.Refusal{Code: "browser_missing", Message: "none", Verb: engine.Open}
		}
	})
	defer d.end(t)
	d.refused(t, `{"verb":"open"}`, "browser_missing", abi.EUNAVAIL)
	if a := d.Surface(); a.Reason != fleet.CodeStartFailed || d.Registered() {
		t.Errorf("%+v", a)
	}
}

// An interaction is told the host at once and the title if it comes in time; a
// page that hangs is not waited for longer than 2 s, and one line says so.
func TestPageOfAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		d := newDesk(t, func(o *browser.Options, _ *browser.SessionOptions) {
			o.Log = slog.New(slog.NewTextHandler(&said, nil))
		})
		defer d.end(t)
		d.Seal("password", "sluice-sealed-v1-a", "correct horse", [][]byte{[]byte("correct horse")}, nil)
		if title, host := d.Page(t.Context()); title != "" || host != "" {
			t.Errorf("no browser: %q %q", title, host)
		}
		d.ok(t, `{"verb":"open"}`)
		f := d.fakes[0]
		f.title = func(context.Context) (string, error) { return "Hi, correct horse", nil }
		if title, host := d.Page(t.Context()); title != "Hi, sluice-sealed-v1-a" || host != "a.example" || said.Len() != 0 {
			t.Errorf("%q %q %s", title, host, said.String())
		}
		f.title = func(ctx context.Context) (string, error) { <-ctx.Done(); return "late", ctx.Err() }
		began := time.Now()
		if title, host := d.Page(t.Context()); title != "" || host != "a.example" || time.Since(began) != 2*time.Second {
			t.Errorf("%q %q after %s", title, host, time.Since(began))
		}
		if n := strings.Count(said.String(), "not read in time"); n != 1 {
			t.Errorf("%d lines: %s", n, said.String())
		}
		f.dialog = &page.Dialog{Type: "alert"} // its script stands still
		if title, host := d.Page(t.Context()); title != "" || host != "a.example" || time.Since(began) != 2*time.Second {
			t.Errorf("%q %q after %s", title, host, time.Since(began))
		}
	})
}

// A connector that is marked untrusted has no browser without a sandbox,
// whatever the operator allows.
func TestUntrusted(t *testing.T) {
	for _, untrusted := range []bool{false, true} {
		d := newDesk(t, func(_ *browser.Options, o *browser.SessionOptions) { o.Untrusted = untrusted })
		d.ok(t, `{"verb":"open"}`)
		if got := d.fakes[0].kind.Trusted; got == untrusted {
			t.Errorf("untrusted %v: the browser is trusted %v", untrusted, got)
		}
		d.end(t)
	}
}
