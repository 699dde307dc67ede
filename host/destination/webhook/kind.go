package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/webhook"
)

const scheme = "webhook:"

// A Kind is that of webhook:https://HOST/PATH#SECRET. Several secrets are separated by
// commas, and each batch is signed with all of them, so that a server can change its own.
type Kind struct{ Courier *webhook.Courier }

// Scheme implements destination.Kind.
func (Kind) Scheme() string { return scheme }

// Check implements destination.Kind. What is shown has neither secrets nor query.
func (k Kind) Check(url, _ string) (string, error) {
	address, secrets := split(url)
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

// split is a URL's address and its secrets.
func split(url string) (address string, secrets []string) {
	address, list, _ := strings.Cut(strings.TrimPrefix(url, scheme), "#")
	if list != "" {
		secrets = strings.Split(list, ",")
	}
	return address, secrets
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
