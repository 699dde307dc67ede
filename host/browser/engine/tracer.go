package engine

import (
	"encoding/json"
	"slices"
	"time"
)

// The stages and results of steps (B155).
const (
	stageResolve   = "resolve"
	stageExecute   = "execute"
	stageVerify    = "verify"
	stageStabilize = "stabilize"
	stageRecover   = "recover"

	stepSuccess = "success"
	stepFailure = "failure"
	stepRetry   = "retry"
)

const (
	maxMeta  = 2 << 10 // bytes of JSON of one step's metadata (B159)
	maxSteps = 400     // of one trace; what is left out is counted in the last one
)

// meta is what a step says beside its result: ids, codes, counts and timings, and
// no text of the page or the guest (B40, B159).
type meta = map[string]any

// A tracer keeps the steps of one verb in memory; it changes nothing else (B160).
type tracer struct {
	id       string
	steps    []Step
	attempts int // passes through execution
	cycle    int
	omitted  int
}

// add appends a step. A read that neither decided nor was the first of many is
// left out once there are too many: the trace says how many were.
func (t *tracer) add(stage, result string, m meta) {
	if stage == stageVerify && result == stepRetry && len(t.steps) >= maxSteps {
		t.omitted++
		return
	}
	if t.omitted > 0 && stage == stageStabilize {
		m["omitted"] = t.omitted
	}
	t.steps = append(t.steps, Step{Stage: stage, At: time.Now().UnixMilli(), Result: result,
		Index: len(t.steps), CycleID: t.cycle, Meta: bounded(m)})
}

// trace is what was kept; outcome is settled by the caller.
func (t *tracer) trace(success bool) Trace {
	out := Trace{ActionID: t.id, Steps: t.steps, Outcome: stepFailure, Attempts: max(t.attempts, 1)}
	if success {
		out.Outcome = stepSuccess
	}
	return out
}

// bounded drops members until the metadata fits: extra first, then from the end of
// the alphabet.
func bounded(m meta) meta {
	for len(m) > 0 && metaSize(m) > maxMeta {
		if _, ok := m["extra"]; ok {
			delete(m, "extra")
			continue
		}
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		delete(m, slices.Max(keys))
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

func metaSize(m meta) int {
	b, err := json.Marshal(m)
	if err != nil {
		return maxMeta + 1
	}
	return len(b)
}
