package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// shown are the members of events that every transcript shows.
var shown = map[string][]string{
	"run.started":             {"collection_mode", "time_range_unenforced"},
	"run.progress_reported":   {"message", "count", "total", "coalesced"},
	"run.batch_ingested":      {"batch_size", "records_permanently_rejected", "rejection_codes"},
	"run.state_staged":        {"cursor"},
	"run.state_advanced":      {"cursor"},
	"run.state_commit_failed": {"state_streams_staged", "state_streams_committed"},
	"run.stream_skipped":      {"reason", "state_stream"},
	"run.detail_coverage_declared": {"state_stream", "required_keys", "hydrated_keys", "gap_keys",
		"considered", "covered"},
	"run.detail_gap_recorded":   {"parent_stream", "reason", "attempt_count"},
	"run.detail_gap_recovered":  {"parent_stream", "matched"},
	"run.interaction_required":  {"kind", "message", "timeout_seconds", "undeclared_kind"},
	"run.interaction_completed": {"status"},
	"run.assistance_requested":  {"assistance_request_id", "progress_posture", "owner_action", "response_obligation"},
	"run.assistance_resolved":   {"assistance_request_id", "reason"},
	"run.assistance_cancelled":  {"assistance_request_id", "reason"},
	"run.assistance_timed_out":  {"assistance_request_id", "reason"},
	"run.assistance_escalated":  {"assistance_request_id", "reason"},
	"run.cancel_requested":      {"cancel_cause"},
	"run.paused":                {"drainPolicy"},
	"run.resumed":               {"cause"},
	"run.failed":                {"open_interaction_id", "secret_redactions"},
	"run.completed":             {"secret_redactions"},
	"log.appended":              {"level", "message", "fields"},
	"output.chunk":              {"chunk", "isLast", "meta"},
	"cap.breached":              {"kind"},
}

// hidden are members that are left out when they have these values.
var hidden = map[string]bool{
	"records_permanently_rejected=0": true, "gap_keys=0": true, "parent_stream=null": true, "reason=null": true,
	"collection_mode=full_refresh": true,
}

const widest = 110

// timeline renders events, one commit a line. The version of the connector is
// the same in all.
func (g *stage) timeline(b *strings.Builder, events []store.Event) {
	b.WriteString("timeline\n")
	events = slices.DeleteFunc(slices.Clone(events), func(e store.Event) bool { return e.Type == "version.pinned" })
	line := ""
	for i, e := range events {
		text := g.event(e)
		if i > 30 && i < len(events)-10 {
			if i == 31 {
				fmt.Fprintln(b, line)
				line = "  …"
			}
			continue
		}
		switch {
		case e.CausationID == "":
			if line != "" {
				fmt.Fprintln(b, line)
			}
			line = "  " + text
		case len(line)+len(text) > widest:
			fmt.Fprintln(b, line)
			line = "    + " + text
		default:
			line += " + " + text
		}
	}
	if line != "" {
		fmt.Fprintln(b, line)
	}
}

func (g *stage) event(e store.Event) string {
	out := e.Type
	if e.Stream != "" {
		out += " " + string(e.Stream)
	}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return out + " " + err.Error()
	}
	members := shown[e.Type]
	for _, s := range g.scenario.all("show") {
		if f := strings.Fields(s); f[0] == e.Type {
			members = append(members[:len(members):len(members)], f[1:]...)
		}
	}
	for _, name := range members {
		v, ok := data[name]
		if !ok || hidden[name+"="+strings.Trim(string(v), `"`)] {
			continue
		}
		out += " " + memberText(name, v)
	}
	return out
}

// memberText renders a member, without its name where the value speaks for itself.
func memberText(name string, v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		s = string(v)
	}
	switch name {
	case "cursor", "chunk", "message":
		return string(v)
	case "batch_size":
		return "×" + s
	case "reason", "status", "kind", "assistance_request_id", "progress_posture", "owner_action", "response_obligation",
		"level", "cancel_cause":
		return quoted(s)
	case "collection_mode":
		return s
	}
	return name + "=" + string(v)
}
