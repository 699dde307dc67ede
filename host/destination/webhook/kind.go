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

// A Kind is that of webhook:https://HOST/PATH#SECRET. Several secrets are separated by
// commas, and each batch is signed with all of them, so that a server can change its own.
// Behind until=TIME stand those that sign until then.
type Kind struct{ Courier *webhook.Courier }

var _ destination.Signer = Kind{}

// Scheme implements destination.Kind.
func (Kind) Scheme() string { return scheme }

// Check implements destination.Kind. What is shown has neither secrets nor query.
func (k Kind) Check(url, _ string) (string, error) {
	address, all := split(url)
	secrets := texts(all, time.Time{})
	if len(secrets) == 0 {
		return "", errors.New("want # and a secret behind the address, with which batches are signed: webhook:https://HOST/PATH#SECRET")
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

// words are those of a refusal; a destination's own URL is the whole.
func words(r *webhook.Refusal) string {
	if r.Member == "url" {
		return "the address " + r.Message
	}
	return "the secret " + r.Message
}

// A secret signs until an instant; the zero one is for ever.
type secret struct {
	text  string
	until time.Time
}

const untilMark = "until="

// split is a URL's address and its secrets.
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

// texts are the secrets that sign at an instant.
func texts(all []secret, at time.Time) (out []string) {
	for _, s := range all {
		if s.until.IsZero() || at.Before(s.until) {
			out = append(out, s.text)
		}
	}
	return out
}

// maxReplaced bounds how many secrets that were replaced sign at a time.
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

// Open implements destination.Kind. There is nothing to claim at a server; that one
// process at a time feeds it follows from the lock of the host's store.
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
