package schedule

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Slow makes the loop look at the clock less often, for tests that let years pass.
func (s *Scheduler) Slow(look time.Duration) { s.look = look }

// RetryWait is how long a failed attempt waits.
var RetryWait = retryWait

// Retryable says whether another attempt may help, for the result of a run.
func Retryable(raw string) bool {
	r, err := resultOf(store.Run{ID: "run_1", Status: "failed", Result: json.RawMessage(raw)})
	if err != nil {
		panic(err)
	}
	return r.retryable()
}
