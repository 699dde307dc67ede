package browser

import (
	"encoding/json"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

// surfaceEvent puts a step of the surface's life into the run's timeline (B167).
func (s *Session) surfaceEvent(e fleet.Event) {
	data := map[string]any{"surface_id": e.ID, "profile": e.Profile}
	if e.Code != "" {
		data["code"] = e.Code
	}
	if e.Restored {
		data["profile_restored"] = true
	}
	if e.Probe != nil {
		data["browser_surface_probe"] = e.Probe
	}
	status := strings.TrimPrefix(e.Type, "run.browser_surface_")
	switch e.Type {
	case fleet.EventFailed, fleet.EventProbeFailed:
		status = "failed"
	}
	s.traceNote("event", map[string]any{"type": e.Type, "data": data})
	s.back.Event(e.Type, status, data)
}

// signal puts a finished action into the timeline: the fields of B65, role and
// url_host, and nothing else (B162).
func (s *Session) signal(a engine.Signal) {
	text, err := json.Marshal(a)
	if err == nil {
		text, err = abi.CleanJSON(text) // an element has the name that its page gave it (S50)
	}
	var data map[string]any
	if err == nil {
		err = json.Unmarshal(text, &data)
	}
	if err != nil {
		s.host.o.Log.Error("an action could not be told", "run", s.runID, "error", err)
		return
	}
	status := "succeeded"
	if a.Verification != "verified" {
		status = "failed"
	}
	s.traceNote("signal", data)
	s.back.Event("run.browser_action", status, data)
}

// denied puts denials of the network into the timeline (B243).
func (s *Session) denied(d chromium.Denial) {
	data := map[string]any{"host": d.Host, "port": d.Port, "verdict": d.Verdict, "count": d.Count}
	s.traceNote("denial", data)
	s.back.Event("run.browser_egress_denied", "denied", data)
}
