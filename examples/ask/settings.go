package main

import (
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

const stream = "answers"

// settings are the connection's (sluice.settings of the manifest).
type settings struct {
	Ask     []question `json:"ask"`
	PauseMS *int       `json:"pause_ms"`
}

// A question is one entry of the setting ask.
type question struct {
	Kind    string   `json:"kind"`
	Message string   `json:"message"`
	Timeout float64  `json:"timeout_seconds"`
	Choices []string `json:"choices"` // of a clarification
	File    string   `json:"file"`    // of a clarification: a file is asked for, of this kind
	Draft   string   `json:"draft"`   // of an approval: a text that its owner may change, or have changed
	Polls   int      `json:"polls"`   // until an external approval is seen, or a back-off is over
	Never   bool     `json:"never"`   // the external approval does not come
}

// everything is what is asked without settings.
var everything = []question{
	{Kind: "credentials", Message: "Sign in with an account of your choice. Nobody checks it."},
	{Kind: "otp", Message: "Enter any six digits."},
	{Kind: "manual_action", Message: "Stretch your legs, then say so."},
	{Kind: "approval", Message: "May the connector go on?"},
	{Kind: "clarification", Message: "Which season do you like best?",
		Choices: []string{"spring", "summer", "autumn", "winter"}},
	{Kind: "external_approval", Message: "Approve the sign-in in the other app.", Polls: 3},
	{Kind: "back_off", Message: "The service is busy.", Polls: 2},
}

func readSettings(run *guest.Run) (settings, error) {
	var s settings
	err := run.Config(&s)
	if s.Ask == nil {
		s.Ask = everything // not before: decoding would fill in questions from it
	}
	return s, err
}

// pause is how long to wait between two polls.
func (s settings) pause() time.Duration {
	if s.PauseMS == nil {
		return 500 * time.Millisecond
	}
	return time.Duration(max(*s.PauseMS, 0)) * time.Millisecond
}

// options of a question.
func (q question) options() []guest.Option {
	options := []guest.Option{guest.OnStream(stream)}
	if q.Timeout > 0 {
		options = append(options, guest.Timeout(time.Duration(q.Timeout*float64(time.Second))))
	}
	if q.Draft != "" {
		options = append(options, guest.Refinable(), guest.Editable(q.Draft))
	}
	return options
}
