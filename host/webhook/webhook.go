// Package webhook tells other servers what happens in runs: signed deliveries
// that follow the timelines. See docs/spec/api.md, "Webhooks".
//
// Whoever calls has checked that the principal may. The server behind a URL is
// hostile: addresses are checked whenever one is dialled, nothing of its answer
// is kept or told but the status and a kind of failure, and all that it can use
// up is bounded.
//
// Every webhook has a cursor for each run, so nothing is lost while its server
// or this process is down. A run knows nothing of its webhooks and never waits
// for one. Deliveries of one run are made in the order of its log, at least
// once; those of different runs are in no order.
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
	BecauseGone    = "gone"    // its server answered 410
	BecauseFailing = "failing" // nothing was taken for 5 days
)

// A Definition is what a new webhook shall be.
type Definition struct {
	URL    string   `json:"url"`
	Events []string `json:"events"`           // types, with * for the rest of a name; OwnerNeeded and LeftOut
	Secret string   `json:"secret,omitempty"` // "" has one made
	Tags   []string `json:"tags,omitempty"`   // only runs that carry one of them; none is all
}

// A Webhook is what is shown of one. It never holds the secret.
type Webhook struct {
	ID        string   `json:"webhookId"`
	URL       string   `json:"url"`
	Events    []string `json:"events"`
	Tags      []string `json:"tags"`
	Status    string   `json:"status"`
	Failures  int      `json:"failures"` // attempts that failed since one succeeded
	CreatedAt string   `json:"createdAt"`
	// LastError is the newest attempt that failed, also when others succeeded since.
	LastError *Attempt `json:"lastError,omitempty"`
	// PreviousUntil is until when deliveries are signed with a replaced secret too.
	PreviousUntil string `json:"previousSecretUntil,omitempty"`

	Because    string    `json:"-"` // it was disabled; "" while active
	DisabledAt time.Time `json:"-"`
}

// stored is a document of kind store.Webhooks. The secret is elsewhere.
type stored struct {
	ID           string    `json:"id"`
	URL          string    `json:"url"`
	Events       []string  `json:"events"`
	Tags         []string  `json:"tags,omitempty"`
	Secret       string    `json:"secret,omitempty"` // of a host that still kept it here; see hide
	CreatedAt    time.Time `json:"created_at"`
	CreatedBy    string    `json:"created_by,omitempty"`
	Failures     int       `json:"failures,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	Because      string    `json:"because,omitempty"`
	DisabledAt   time.Time `json:"disabled_at,omitzero"`
	Attempts     []Attempt `json:"attempts,omitempty"` // oldest first
	LastError    *Attempt  `json:"last_error,omitempty"`
	// Rotations is how often the secret was replaced; see signing.
	Rotations     int       `json:"rotations,omitempty"`
	PreviousUntil time.Time `json:"previous_until,omitzero"`
}

func (s *stored) shown() Webhook {
	w := Webhook{
		ID: s.ID, URL: s.URL, Events: slices.Clone(s.Events), Tags: append([]string{}, s.Tags...), Status: Active,
		Failures: s.Failures, CreatedAt: store.Time(s.CreatedAt), Because: s.Because, DisabledAt: s.DisabledAt,
		LastError: s.LastError,
	}
	if time.Now().Before(s.PreviousUntil) {
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

// tagsOf checks the tags of a definition.
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

// ErrTooMany: there are MaxWebhooks already.
var ErrTooMany = fmt.Errorf("there are %d webhooks already; delete one first", MaxWebhooks)

// A Refusal is a definition that cannot be taken (400 validation_error). It
// names the member and never repeats its value.
type Refusal struct {
	Member  string // url, events, secret or tags
	Message string
}

func (e *Refusal) Error() string { return e.Member + " " + e.Message }

func refuse(member, format string, args ...any) *Refusal {
	return &Refusal{Member: member, Message: fmt.Sprintf(format, args...)}
}
