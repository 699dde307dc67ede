package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMetadataIsBounded(t *testing.T) {
	tr := tracer{id: "act_1"}
	tr.add(stageResolve, stepSuccess, meta{"code": "X", "extra": strings.Repeat("e", 3000)})
	tr.add(stageResolve, stepSuccess, meta{"code": "X", "reason": strings.Repeat("r", 3000)})
	for i, s := range tr.steps {
		if len(s.Meta) != 1 || s.Meta["code"] != "X" {
			t.Errorf("step %d: %v", i, s.Meta)
		}
	}
}

func TestTraceIsBounded(t *testing.T) {
	tr := tracer{id: "act_1"}
	for range 10 * maxSteps {
		tr.add(stageVerify, stepRetry, nil)
	}
	tr.add(stageStabilize, stepFailure, meta{})
	if got := tr.trace(false); len(got.Steps) != maxSteps+1 ||
		got.Steps[maxSteps].Meta["omitted"] != 9*maxSteps || got.Attempts != 1 {
		t.Errorf("%d steps, last %v", len(got.Steps), got.Steps[len(got.Steps)-1])
	}
}

func TestClipKeepsCharacters(t *testing.T) {
	if got := cutText("x"+strings.Repeat("ü", 60), 80); len(got) != 79 || strings.Contains(got, "\uFFFD") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestAlarmsCountTimeThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, rang := newClock(), make(chan time.Duration, 2)
		began := time.Now()
		ring := func() { rang <- time.Since(began) }
		c.after(10*time.Second, ring)
		time.Sleep(4 * time.Second)
		c.pause()
		c.pause()
		c.after(time.Second, ring) // armed while it stands
		time.Sleep(time.Minute)
		c.resume()
		time.Sleep(time.Minute)
		c.resume()
		if first, second := <-rang, <-rang; first != 125*time.Second || second != 130*time.Second {
			t.Errorf("rang after %v and %v", first, second)
		}
		if got := c.now(); got != 10*time.Second {
			t.Errorf("%v counted", got)
		}
		stop := c.after(time.Second, func() { t.Error("a stopped alarm rang") })
		stop()
		c.resume() // one too many does nothing
		time.Sleep(2 * time.Second)
	})
}
