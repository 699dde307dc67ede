package main

import (
	"errors"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// An outcome is what is recorded of a question: that a secret was given, never
// the secret.
type outcome struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Outcome string   `json:"outcome"`
	Given   []string `json:"given,omitempty"`  // the fields that were filled in
	Sealed  []string `json:"sealed,omitempty"` // those of them that came as a handle
	Text    string   `json:"text,omitempty"`   // a comment or an answer that is no secret
	Polls   int      `json:"polls,omitempty"`
}

// declined turns a question that got no answer into its outcome. Other errors
// end the run.
func declined(err error) (outcome, error) {
	switch {
	case errors.Is(err, guest.ErrCancelled):
		return outcome{Outcome: "cancelled"}, nil
	case errors.Is(err, guest.ErrTimeout):
		return outcome{Outcome: "timeout"}, nil
	default:
		return outcome{}, err
	}
}
