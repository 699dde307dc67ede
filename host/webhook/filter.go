package webhook

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// OwnerNeeded is a filter for notifications. It matches the run.assistance_requested events that need the owner: every
// question, and every request for help whose owner_action is not none. It yields one delivery per question, whereas
// node.suspended, interrupt.requested and run.interaction_required each report it again. The delivery has the type of
// the event.
const OwnerNeeded = "owner.needed"

// LeftOut is a filter for notifications. It matches the run.completed events of runs that left something out.
const LeftOut = "run.partial"

// filterOf validates the events of a definition.
func filterOf(events []string) error {
	if len(events) == 0 || len(events) > maxEvents {
		return refuse("events", "must have 1 to %d entries", maxEvents)
	}
	for _, pattern := range events {
		if pattern != OwnerNeeded && pattern != LeftOut &&
			!slices.ContainsFunc(timeline.Catalogue(), func(e timeline.Entry) bool { return matches(pattern, string(e.Type)) }) {
			return refuse("events", "has an entry that is no event type, no prefix of one with * and neither %s nor %s",
				OwnerNeeded, LeftOut)
		}
	}
	return nil
}

func matches(pattern, eventType string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(eventType, prefix)
	}
	return pattern == eventType
}

// wants reports whether a webhook with these events wants e.
func wants(events []string, e store.Event) bool {
	return slices.ContainsFunc(events, func(pattern string) bool {
		return matches(pattern, e.Type) || pattern == OwnerNeeded && asksOwner(e) || pattern == LeftOut && leftOut(e)
	})
}

func asksOwner(e store.Event) bool {
	if e.Type != "run.assistance_requested" {
		return false
	}
	var data struct {
		Action string `json:"owner_action"`
	}
	return json.Unmarshal(e.Data, &data) == nil && data.Action != "none"
}

func leftOut(e store.Event) bool {
	var data struct {
		Outcome string `json:"outcome"`
	}
	return e.Type == "run.completed" && json.Unmarshal(e.Data, &data) == nil && data.Outcome == timeline.Partial
}

// ends reports whether an event is the last of its run.
func ends(e store.Event) bool {
	return e.Type == "run.completed" || e.Type == "run.failed" || e.Type == "run.cancelled"
}
