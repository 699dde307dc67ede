package engine

import (
	"fmt"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Evidence is what the classifier of B63 is given. Requests are nil when none were
// supplied, and empty when none were made.
type Evidence struct {
	Changed         bool  // ui_changed
	ExpectedVisible *bool // nil: not known
	Action          Verb
	ActionType      string
	Requests        []page.RequestSeen
	LogErrors       int
	// Failed: the action came to its end without its delta. Whatever changed in the
	// page then is not its success.
	Failed bool
}

// Classify says what an action that was not verified probably was. It routes, it
// does not verify: success is not its business (B63).
func Classify(e Evidence) *Classification {
	c := e.classify()
	if e.LogErrors > 0 {
		c.Reasoning += fmt.Sprintf("; the page logged %d error(s)", e.LogErrors)
	}
	return c
}

func (e Evidence) classify() *Classification {
	effect := e.ActionType
	if effect == "" && e.Action != "" {
		effect, _ = Effect(e.Action, nil, "")
	}
	bad := e.failing()
	switch {
	case !e.Failed && e.ExpectedVisible != nil && *e.ExpectedVisible:
		return &Classification{"success", "expected_visible: what was expected is visible"}
	case !e.Failed && e.Changed:
		return &Classification{"success", "ui_changed: the page changed"}
	case e.Changed && bad == nil:
		return &Classification{"ui_failure", "ui_changed: the page changed, and what was expected of it did not come"}
	case effect == "":
		return &Classification{"unknown", "the action was not supplied"}
	case bad != nil:
		return &Classification{"backend_failure", fmt.Sprintf("%s answered with status %d", bad.Endpoint, bad.Status)}
	case effect == LocalState:
		return &Classification{"no_op", "nothing changed in the page; use expect, a refreshed snapshot or a visibility check"}
	case e.Requests == nil:
		return &Classification{"unknown", "the page did not change and its requests were not supplied"}
	case len(e.Requests) == 0:
		return &Classification{"no_op", "the page did not change and made no requests"}
	case e.allGood():
		return &Classification{"ui_failure", "every request succeeded and the page did not change"}
	}
	return &Classification{"unknown", "the requests have no clear outcome"}
}

func (e Evidence) failing() *page.RequestSeen {
	for i := range e.Requests {
		if v := e.Requests[i].Verdict; v == "failure" || v == "retryable" {
			return &e.Requests[i]
		}
	}
	return nil
}

func (e Evidence) allGood() bool {
	for _, r := range e.Requests {
		if r.Verdict != "success" {
			return false
		}
	}
	return true
}
