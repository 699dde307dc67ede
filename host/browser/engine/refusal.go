package engine

import (
	"github.com/sluicehost/sluice/abi"
)

// A Refusal is a call that was not accepted. Nothing has touched the page.
type Refusal struct {
	Code    string
	Message string
	Verb    Verb
	// Reason is the probe's code, for surface_lost.
	Reason string
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Errno returns the errno of the refusal. An unknown code counts as internal.
func (r *Refusal) Errno() abi.Errno { return refusals[r.known()].errno }

// Retryable reports whether the same call may succeed later.
func (r *Refusal) Retryable() bool { return refusals[r.known()].retryable }

func (r *Refusal) known() string {
	if _, ok := refusals[r.Code]; ok {
		return r.Code
	}
	return "internal"
}

var refusals = map[string]struct {
	errno     abi.Errno
	retryable bool
}{
	"invalid_request":           {abi.EINVAL, false},
	"unknown_verb":              {abi.ENOTSUP, false},
	"INVALID_SELECTOR":          {abi.EINVAL, false},
	"INVALID_CONDITION":         {abi.EINVAL, false},
	"browser_not_granted":       {abi.EDENIED, false},
	"capability_denied":         {abi.EDENIED, false},
	"surface_not_open":          {abi.EINVAL, false},
	"surface_already_open":      {abi.EINVAL, false},
	"surface_busy":              {abi.EBUSY, true},
	"rate_limited":              {abi.ERATE, true},
	"surface_lost":              {abi.EUNAVAIL, false},
	"owner_in_control":          {abi.EBUSY, true},
	"profile_name_invalid":      {abi.EINVAL, false},
	"profile_in_use":            {abi.EUNAVAIL, true},
	"browser_missing":           {abi.EUNAVAIL, false},
	"surface_start_failed":      {abi.EUNAVAIL, true},
	"browser_unsafe":            {abi.EUNAVAIL, false},
	"browser_capacity":          {abi.EUNAVAIL, true},
	"session_not_live":          {abi.EUNAVAIL, false},
	"sealed_destination_denied": {abi.EDENIED, false},
	"sealed_placement_denied":   {abi.EDENIED, false},
	"sealed_handle_unknown":     {abi.EDENIED, false},
	"result_too_large":          {abi.ETOOBIG, false},
	CodeReverted:                {abi.EINVAL, false},
	"internal":                  {abi.EIO, false},
}
