package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-github/v88/github"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// An answer is one page of a list.
type answer[T any] struct {
	items     []T
	unchanged bool // since the ETag that was sent
	etag      string
	next      int // the page that the Link header names, 0 for none
}

// A question calls one method of go-github.
type question[T any] func(ctx context.Context) ([]T, *github.Response, error)

// errNothing is an answer without a list: go-github reads an empty body, and null, as
// an empty list, which would delete a whole inventory.
var errNothing = errors.New("there is nothing in the answer")

// ask asks one question, again after a short wait when that may help. The error
// is one that classify returns.
func ask[T any](ctx context.Context, c *collection, etag string, q question[T]) (answer[T], error) {
	for try := 0; ; try++ {
		items, resp, err := q(withETag(ctx, etag))
		if err == nil && items == nil {
			err = errNothing
		}
		if err == nil {
			return answer[T]{items: items, etag: etagOf(resp.Header), next: resp.NextPage}, nil
		}
		if etag != "" && resp != nil && resp.Response != nil && resp.StatusCode == http.StatusNotModified {
			return answer[T]{unchanged: true, etag: etag}, nil
		}
		err = classify(err)
		wait, ok := c.clock.pause(err, try)
		if !ok {
			return answer[T]{}, err
		}
		if err := c.clock.sleep(ctx, wait); err != nil {
			return answer[T]{}, err
		}
	}
}

// A patience is how long a run waits for a server that asks it to.
type patience struct {
	run     *guest.Run
	longest time.Duration // for one question
	left    time.Duration // for all
}

const (
	maxTries = 3
	// afterTrouble is the wait before a question that failed is asked once more.
	afterTrouble = 2 * time.Second
	// slice is how often a wait tells the host, which may cancel the run.
	slice = 5 * time.Second
)

func newPatience(run *guest.Run, longest time.Duration) *patience {
	return &patience{run, longest, 10 * longest}
}

// pause is how long to wait before a question is asked again, if it is.
func (p *patience) pause(err error, try int) (time.Duration, bool) {
	if l, ok := errors.AsType[*limited](err); ok {
		wait := max(time.Until(l.until), 0) + time.Second
		return wait, try < maxTries && wait <= p.longest && wait <= p.left
	}
	t, ok := errors.AsType[*trouble](err)
	return afterTrouble, ok && t.retryable && try == 0
}

// sleep waits and says so now and then.
func (p *patience) sleep(ctx context.Context, d time.Duration) error {
	if d > afterTrouble {
		p.left -= d
	}
	for d > 0 {
		if d > afterTrouble {
			if err := p.run.Progress(fmt.Sprintf("GitHub asks for a pause: %d s left",
				int(d.Round(time.Second)/time.Second))); err != nil {
				return err
			}
		}
		timer := time.NewTimer(min(d, slice))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		d -= slice
	}
	return nil
}
