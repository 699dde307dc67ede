package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/webhook"
)

const scheme = "webhook:"

// A Kind is the kind of destinations at webhook:https://HOST/PATH#SECRET. There may be several secrets, separated by
// commas. Each batch is signed with all of them, so that a server can change its own. Secrets behind until=TIME sign
// until then.
type Kind struct{ Courier *webhook.Courier }

var _ destination.Signer = Kind{}

// Scheme implements destination.Kind.
func (Kind) Scheme() string { return scheme }

// Check implements destination.Kind. The URL is shown without secrets and query.
func (k Kind) Check(url, _ string) (string, error) {
	address, all := split(url)
	secrets := texts(all, time.Time{})
	if len(secrets) == 0 {
		return "", errors.New(
			"want # and a secret behind the address, with which batches are signed: webhook:https://HOST/PATH#SECRET")
	}
	var refused *webhook.Refusal
	if err := k.Courier.Check(address, secrets); errors.As(err, &refused) {
		return "", errors.New(words(refused))
	} else if err != nil {
		return "", err
	}
	shown, query, _ := strings.Cut(address, "?")
	if query != "" {
		shown += "?…"
	}
	return abi.Clean(scheme + shown), nil
}

// words returns the text of a refusal with its subject.
func words(r *webhook.Refusal) string {
	if r.Member == "url" {
		return "the address " + r.Message
	}
	return "the secret " + r.Message
}

// A secret signs until the given time; the zero time means forever.
type secret struct {
	text  string
	until time.Time
}

const untilMark = "until="

// split returns the address and the secrets in a URL.
func split(url string) (address string, secrets []secret) {
	address, list, _ := strings.Cut(strings.TrimPrefix(url, scheme), "#")
	if list == "" {
		return address, nil
	}
	var until time.Time
	for text := range strings.SplitSeq(list, ",") {
		if stamp, marked := strings.CutPrefix(text, untilMark); marked {
			if t, err := time.Parse(time.RFC3339, stamp); err == nil {
				until = t
				continue
			}
		}
		secrets = append(secrets, secret{text, until})
	}
	return address, secrets
}

// texts returns the secrets that sign at the given time.
func texts(all []secret, at time.Time) (out []string) {
	for _, s := range all {
		if s.until.IsZero() || at.Before(s.until) {
			out = append(out, s.text)
		}
	}
	return out
}

// maxReplaced bounds how many replaced secrets sign at a time.
const maxReplaced = 4

// Rotate implements destination.Signer.
func (k Kind) Rotate(url, next string, now, until time.Time) (string, error) {
	address, all := split(url)
	if strings.ContainsAny(next, ",#") || strings.HasPrefix(next, untilMark) {
		return "", errors.New("the secret must hold no comma and no #")
	}
	out, replaced := scheme+address+"#"+next, 0
	for _, s := range all {
		if !s.until.IsZero() && !now.Before(s.until) || s.text == next {
			continue
		}
		if s.until.IsZero() {
			s.until = until
		}
		out += "," + untilMark + s.until.UTC().Format(time.RFC3339) + "," + s.text
		replaced++
	}
	if replaced > maxReplaced {
		return "", fmt.Errorf("%d secrets of before still sign; wait until the oldest ends", replaced-1)
	}
	return out, nil
}

// Open implements destination.Kind. A server cannot be claimed; the host's store ensures that only one process feeds
// it.
func (k Kind) Open(ctx context.Context, url string, o destination.Owner) (destination.Sink, error) {
	if o.Marks == nil {
		return nil, errors.New("a webhook needs a host that keeps how far it is")
	}
	s := &sink{courier: k.Courier, name: o.Destination, marks: o.Marks, has: map[destination.StreamID]mark{}}
	s.address, s.secrets = split(url)
	if err := k.Courier.Reach(ctx, s.address); err != nil {
		var refused *webhook.Refusal
		if errors.As(err, &refused) {
			return nil, errors.New(words(refused))
		}
		return nil, err
	}
	kept, err := o.Marks.Marks(ctx)
	if err != nil {
		return nil, err
	}
	for id, data := range kept {
		var m mark
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, fmt.Errorf("read how far %s is: %w", id, err)
		}
		s.has[id] = m
	}
	return s, nil
}
