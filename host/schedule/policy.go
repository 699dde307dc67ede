package schedule

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// Automation modes.
const (
	Unattended   = "unattended"
	Assisted     = "assisted"
	AskBeforeRun = "ask_before_run"
)

// ManualOnly is the code of a policy that refuses automatic starts.
const ManualOnly = "manual_only"

// A Policy is capabilities.refresh_policy of a manifest: its author's statement about unattended
// runs. Members of the wrong type count as absent.
type Policy struct {
	Mode            string // recommended_mode: automatic, manual, paused or ""
	Unsafe          bool   // background_safe is false
	Safe            bool   // background_safe is true
	Posture         string // interaction_posture
	AfterOwnerAuth  bool   // assisted_after_owner_auth
	MinimumInterval time.Duration
}

// ReadPolicy parses the object of a checked manifest; nil gives the zero Policy.
func ReadPolicy(raw json.RawMessage) Policy {
	var p Policy
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{MaxValues: 1 << 16})
	if err != nil {
		return p
	}
	p.Mode = text(v, "recommended_mode")
	p.Posture = text(v, "interaction_posture")
	if safe, ok := flag(v, "background_safe"); ok {
		p.Safe, p.Unsafe = safe, !safe
	}
	p.AfterOwnerAuth, _ = flag(v, "assisted_after_owner_auth")
	if m, ok := v.Member("minimum_interval_seconds"); ok {
		if n, ok := m.SafeInteger(); ok && n > 0 {
			p.MinimumInterval = time.Duration(min(n, maxInterval)) * time.Second
		}
	}
	return p
}

func text(v strictjson.Value, name string) string {
	m, _ := v.Member(name)
	s, _ := m.Text()
	return s
}

func flag(v strictjson.Value, name string) (value, ok bool) {
	m, _ := v.Member(name)
	return m.Bool()
}

// Refuses returns why automatic starts are refused: manual_only, or "".
func (p Policy) Refuses() string {
	if p.Mode == "paused" || p.Unsafe || p.Mode == "manual" && !p.Safe {
		return ManualOnly
	}
	return ""
}

// Automation returns the mode of an automatic run of a ready connection.
func (p Policy) Automation() string {
	switch p.Posture {
	case "credentials", "otp_likely", "manual_action_likely":
		if !p.AfterOwnerAuth {
			return Assisted
		}
	}
	return Unattended
}
