// Package webhook notifies other servers of what happens in runs, with signed deliveries that follow the timelines. See
// docs/spec/api.md, "Webhooks".
//
// The caller checks permissions. The server behind a URL is untrusted: addresses are checked at every connection,
// nothing of an answer is stored or revealed except the status and a kind of failure, and all resources that it can use
// are limited.
//
// Every webhook has a cursor for each run, so nothing is lost while its server or this process is down. Runs do not
// know about webhooks and never wait for them. Deliveries for one run are made in the order of its log, at least once;
// those for different runs are in no particular order.
package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/store"
)

// The statuses of a webhook.
const (
	Active   = "active"
	Disabled = "disabled"
)

// Why a webhook was disabled.
const (
	BecauseGone    = "gone"    // its server answered with 410
	BecauseFailing = "failing" // no success for 5 days
)

// A Definition describes a new webhook.
type Definition struct {
	URL    string   `json:"url"`
	Events []string `json:"events"`           // types, or prefixes of types with *; also OwnerNeeded and LeftOut
	Secret string   `json:"secret,omitempty"` // "" generates one
	Tags   []string `json:"tags,omitempty"`   // only runs with one of these tags; none means all
}

// A Webhook is the public view of a webhook, without the secret.
type Webhook struct {
	ID        string   `json:"webhookId"`
	URL       string   `json:"url"`
	Events    []string `json:"events"`
	Tags      []string `json:"tags"`
	Status    string   `json:"status"`
	Failures  int      `json:"failures"` // failed attempts since the last success
	CreatedAt string   `json:"createdAt"`
	// LastError is the newest failed attempt, even if later ones succeeded.
	LastError *Attempt `json:"lastError,omitempty"`
	// PreviousUntil is when the last replaced secret stops signing.
	PreviousUntil string `json:"previousSecretUntil,omitempty"`

	Because    string    `json:"-"` // reason why it was disabled; "" while active
	DisabledAt time.Time `json:"-"`
}

// A stored is a document of kind store.Webhooks. The secret is stored elsewhere.
type stored struct {
	ID           string    `json:"id"`
	URL          string    `json:"url"`
	Events       []string  `json:"events"`
	Tags         []string  `json:"tags,omitempty"`
	Secret       string    `json:"secret,omitempty"` // only in documents of earlier versions; see hide
	CreatedAt    time.Time `json:"created_at"`
	CreatedBy    string    `json:"created_by,omitempty"`
	Failures     int       `json:"failures,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	Because      string    `json:"because,omitempty"`
	DisabledAt   time.Time `json:"disabled_at,omitzero"`
	Attempts     []Attempt `json:"attempts,omitempty"` // oldest first
	LastError    *Attempt  `json:"last_error,omitempty"`
	// Rotations counts the rotations of the secret; see signing.
	Rotations     int       `json:"rotations,omitempty"`
	PreviousUntil time.Time `json:"previous_until,omitzero"`
}

func (s *stored) shown(now time.Time) Webhook {
	w := Webhook{
		ID: s.ID, URL: s.URL, Events: slices.Clone(s.Events), Tags: append([]string{}, s.Tags...), Status: Active,
		Failures: s.Failures, CreatedAt: store.Time(s.CreatedAt), Because: s.Because, DisabledAt: s.DisabledAt,
		LastError: s.LastError,
	}
	if now.Before(s.PreviousUntil) {
		w.PreviousUntil = store.Time(s.PreviousUntil)
	}
	if s.Because != "" {
		w.Status = Disabled
	}
	return w
}

func read(d store.Document) (*stored, error) {
	s := &stored{}
	if err := json.Unmarshal(d.Data, s); err != nil {
		return nil, fmt.Errorf("read webhook %s: %w", d.ID, err)
	}
	return s, nil
}

// tagsOf validates the tags of a definition.
func tagsOf(tags []string) error {
	if len(tags) > maxTags {
		return refuse("tags", "has more than %d entries", maxTags)
	}
	for _, t := range tags {
		if t == "" || len(t) > maxTag || !utf8.ValidString(t) {
			return refuse("tags", "has an entry that is empty, longer than %d bytes or not UTF-8", maxTag)
		}
	}
	return nil
}

// Limits of an installation.
const (
	MaxWebhooks = 64
	maxEvents   = 64
	maxTags     = 32
	maxTag      = 128
	maxURL      = 2048
)

// ErrTooMany reports that there are already MaxWebhooks webhooks.
var ErrTooMany = fmt.Errorf("there are %d webhooks already; delete one first", MaxWebhooks)

// A Refusal reports an invalid definition (400 validation_error). It names the member and never repeats its value.
type Refusal struct {
	Member  string // url, events, secret or tags
	Message string
}

func (e *Refusal) Error() string { return e.Member + " " + e.Message }

func refuse(member, format string, args ...any) *Refusal {
	return &Refusal{Member: member, Message: fmt.Sprintf(format, args...)}
}
