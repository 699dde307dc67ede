package abi

import (
	"github.com/sluicehost/sluice/abi/strictjson"
	"slices"
)

// A RecoveryHint is the connector's advice on what would help.
type RecoveryHint struct {
	Action    string `json:"action"`
	Retryable *bool  `json:"retryable,omitempty"`
}

// The actions of a RecoveryHint.
const (
	RetryByRuntime          = "retry_by_runtime"
	RetryOnConnectorUpgrade = "retry_on_connector_upgrade"
	RefreshCredentials      = "refresh_credentials"
	ManualActionRequired    = "manual_action_required"
	UpdateSelector          = "update_selector"
	UpstreamUnblock         = "upstream_unblock"
	NotRetriable            = "not_retriable"
	UnknownAction           = "unknown"
)

// RecoveryActions lists all of them.
var RecoveryActions = []string{
	RetryByRuntime, RetryOnConnectorUpgrade, RefreshCredentials, ManualActionRequired,
	UpdateSelector, UpstreamUnblock, NotRetriable, UnknownAction,
}

// WillRetry returns Retryable or its default.
func (h RecoveryHint) WillRetry() bool {
	if h.Retryable != nil {
		return *h.Retryable
	}
	return h.Action == RetryByRuntime
}

// hint reads a recovery hint: an action, or {action, retryable?}.
func (r *reader) hint(v strictjson.Value, field string, bad Subtype) *RecoveryHint {
	if v.Absent() {
		return nil
	}
	h := &RecoveryHint{}
	if v.Kind == strictjson.KindObject {
		for name := range v.Members() {
			if name != "action" && name != "retryable" {
				r.fail(bad, field).Detail = "a hint has the members action and retryable only"
				return nil
			}
		}
		if b, _ := v.Member("retryable"); !b.Absent() {
			retry, ok := b.Bool()
			if !ok {
				r.fail(bad, field+".retryable")
				return nil
			}
			h.Retryable = &retry
		}
		v, _ = v.Member("action")
		field += ".action"
	}
	action, ok := v.Text()
	if !ok || !slices.Contains(RecoveryActions, action) {
		f := r.fail(bad, field)
		f.Expected, f.Received = RecoveryActions, action
		return nil
	}
	h.Action = action
	return h
}
