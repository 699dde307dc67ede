package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sluicehost/sluice/store"
)

// Causes of an attempt.
const (
	ForEvent      = "event"
	ForTest       = "test"
	ForRedelivery = "redelivery"
)

// Kinds of failure of an attempt. Nothing else is revealed about a failure: no text of a server, a resolver or the
// system.
const (
	FailedStatus  = "status"  // the status of the answer was not 2xx
	FailedURL     = "url"     // the host no longer delivers to this URL
	FailedAddress = "address" // the name has no address to which deliveries may go
	FailedConnect = "connect" // connecting failed
	FailedTLS     = "tls"     // no trusted TLS connection
	FailedTimeout = "timeout" // no complete answer in time
	FailedAnswer  = "answer"  // the connection ended, or the answer was invalid
)

// keptAttempts is how many attempts of a webhook are stored.
const keptAttempts = 50

// An Attempt is a stored attempt at a delivery. Of the answer it only contains the status.
type Attempt struct {
	ID         string        `json:"deliveryId"`
	MessageID  string        `json:"messageId"` // the webhook-id header; the same in all attempts for an event
	Cause      string        `json:"cause" enum:"event|test|redelivery"`
	Type       string        `json:"type"` // of the event
	RunID      store.RunID   `json:"runId,omitempty"`
	EventID    store.EventID `json:"eventId,omitempty"`
	Sequence   *uint64       `json:"sequence,omitempty"`
	Number     int           `json:"attempt"`          // for this event, from 1; always 1 for a test or redelivery
	Status     int           `json:"status,omitempty"` // of the answer, if there was one
	Error      string        `json:"error,omitempty" enum:"status|url|address|connect|tls|timeout|answer"`
	DurationMS int64         `json:"durationMs"`
	At         string        `json:"at"`
}

// Outcome describes the result of an attempt in words.
func (a Attempt) Outcome() string {
	switch a.Error {
	case "":
		return fmt.Sprintf("delivered (%d)", a.Status)
	case FailedStatus:
		return strings.TrimSpace(fmt.Sprintf("answered %d %s", a.Status, http.StatusText(a.Status)))
	case FailedURL:
		return "the address is not one that this host delivers to"
	case FailedAddress:
		return "the server is not found, or not at a public address"
	case FailedConnect:
		return "no connection to the server"
	case FailedTLS:
		return "no trusted TLS connection to the server"
	case FailedTimeout:
		return fmt.Sprintf("no answer in %v", attemptTime)
	}
	return "the connection ended without an answer"
}

// attemptFor returns the record of an attempt that is about to be made.
func attemptFor(webhook, cause string, e store.Event, number int) Attempt {
	sequence := e.Sequence
	return Attempt{
		MessageID: messageID(webhook, e), Cause: cause, Type: e.Type, RunID: e.RunID, EventID: e.ID,
		Sequence: &sequence, Number: number,
	}
}

// A sender signs and posts messages for one webhook.
type sender struct {
	url  string
	keys func(at time.Time) [][]byte
	post func(context.Context, message) (int, error)
	now  func() time.Time
}

// send makes the attempt. Any 2xx status is a success.
func (s *sender) send(ctx context.Context, a Attempt, body []byte) (Attempt, error) {
	m, began := message{url: s.url, id: a.MessageID, at: s.now(), body: body}, time.Now()
	m.signature = signAll(s.keys(m.at), m.id, m.at, body)
	status, err := s.post(ctx, m)
	if err == nil && status/100 != 2 {
		err = answered(status)
	}
	a.ID, a.At, a.Status = "del_"+ulid.Make().String(), store.Time(m.at), status
	a.DurationMS, a.Error = time.Since(began).Milliseconds(), classOf(err)
	return a, err
}

// classOf returns the kind of failure of an error, or "" for nil.
func classOf(err error) string {
	var status answered
	var refused *Refusal
	var timeout net.Error
	var dial *net.OpError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &status):
		return FailedStatus
	case errors.Is(err, errNowhere):
		return FailedAddress
	case errors.As(err, &refused):
		return FailedURL
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return FailedTimeout
	case isTLS(err):
		return FailedTLS
	case errors.As(err, &dial) && dial.Op == "dial":
		return FailedConnect
	}
	return FailedAnswer
}

func isTLS(err error) bool {
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &certificate) || errors.As(err, &authority) || errors.As(err, &name) ||
		errors.As(err, &invalid) ||
		errors.As(err, &record) || errors.As(err, &alert)
}

// note adds an attempt and drops the oldest if there are too many.
func (s *stored) note(a Attempt) {
	if s.Attempts = append(s.Attempts, a); len(s.Attempts) > keptAttempts {
		s.Attempts = s.Attempts[len(s.Attempts)-keptAttempts:]
	}
	if a.Error != "" {
		s.LastError = &a
	}
}

// note stores an attempt, even while this process is ending.
func note(ctx context.Context, st store.Documents, webhook string, a Attempt) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return change(ctx, st, webhook, func(s *stored) { s.note(a) })
}
