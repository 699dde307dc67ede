// Command github is a connector that collects from the GitHub REST API:
// repositories with their issues, pull requests, comments and releases, and the
// stars of a user. It asks for what is new since the last run, and by ETag for
// whether anything is.
//
// go-github does the talking, unchanged, over the network binding. What it
// returns is not trusted: lists are bounded, must go forward and must be in the
// order asked for, and an answer that is cut short never counts as an empty one.
package main

import (
	"context"
	"errors"

	"github.com/google/go-github/v88/github"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

// A collection is one run.
type collection struct {
	run    *guest.Run
	set    settings
	client *github.Client
	clock  *patience

	repositories []repository
	complete     bool // repositories are all there are
	answered     int  // lists that were had, whole or unchanged
	troubles     []noted
}

// A step collects one stream.
type step struct {
	stream string
	do     func(ctx context.Context, s *stream) error
}

func collect(ctx context.Context, run *guest.Run) error {
	set, err := readSettings(run)
	if err != nil {
		return err
	}
	c := &collection{run: run, set: set, clock: newPatience(run, set.wait)}
	if c.client, err = newClient(run, set); err != nil {
		return err
	}
	steps := []step{
		{"repositories", c.collectRepositories}, {"stars", c.collectStars}, {"issues", c.each(c.collectIssues)},
		{"pull_requests", c.each(c.collectPullRequests)}, {"comments", c.each(c.collectComments)},
		{"review_comments", c.each(c.collectReviewComments)}, {"releases", c.each(c.collectReleases)},
	}
	for i, st := range steps {
		s, err := openStream(run, st.stream, set)
		if err != nil {
			return err
		}
		if s == nil && (st.stream != "repositories" || !perRepository(run)) {
			continue
		}
		err = st.do(ctx, s)
		if l, ok := errors.AsType[*limited](err); ok {
			return errors.Join(c.report(), c.stopped(steps[i:], l))
		}
		if err != nil {
			return err
		}
	}
	if err := c.report(); err != nil {
		return err
	}
	if n := len(c.troubles); c.answered == 0 && n > 0 {
		t := c.troubles[n-1]
		return guest.Fail(t.reason, t.retryable, t.hint, "nothing could be collected; %s: %w", t.name, t.err)
	}
	return nil
}

// perRepository reports whether the scope has a stream that needs the list of
// repositories.
func perRepository(run *guest.Run) bool {
	for _, s := range run.Scope().Streams {
		if s.Name != "repositories" && s.Name != "stars" {
			return true
		}
	}
	return false
}

// stopped ends the run at a rate limit. The streams that are done keep their
// cursors: a failure that names the stream it struck is a certified one.
func (c *collection) stopped(rest []step, l *limited) error {
	reason := guest.CodeStreamFailed
	for _, st := range rest {
		if !c.run.InScope(st.stream) {
			continue
		}
		err := c.run.Skip(guest.Skip{Stream: st.stream, Reason: reason, Message: l.Error(),
			RecoveryHint: &guest.Hint{Action: guest.RetryByRuntime}})
		if err != nil {
			return err
		}
		reason = "rate_limited"
	}
	return guest.Fail(guest.CodeStreamFailed, true, guest.RetryByRuntime, "%w", l)
}
