package main

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/google/go-github/v88/github"
)

type issueRecord struct {
	ID          string   `json:"id"`
	Repository  string   `json:"repository"`
	Number      int      `json:"number"`
	Title       *string  `json:"title"`
	Body        *string  `json:"body"`
	State       *string  `json:"state"`
	StateReason *string  `json:"state_reason"`
	Author      *string  `json:"author"`
	Assignees   []string `json:"assignees"`
	Labels      []string `json:"labels"`
	Milestone   *string  `json:"milestone"`
	Comments    int      `json:"comments"`
	Locked      bool     `json:"locked"`
	URL         *string  `json:"url"`
	CreatedAt   *string  `json:"created_at"`
	UpdatedAt   *string  `json:"updated_at"`
	ClosedAt    *string  `json:"closed_at"`
}

// collectIssues leaves out pull requests, which the API lists among issues.
func (c *collection) collectIssues(ctx context.Context, s *stream, r repository, m *mark) error {
	err := since(ctx, c, m, s.floor,
		func(ctx context.Context, from time.Time, o github.ListOptions) ([]*github.Issue, *github.Response, error) {
			return c.client.Issues.ListByRepo(ctx, r.owner(), r.name(),
				&github.IssueListByRepoOptions{State: "all", Sort: "updated", Direction: "asc", Since: from, ListOptions: o})
		}, func(i *github.Issue) error {
			created := moment(i.CreatedAt)
			if i.IsPullRequest() || !s.AdmitsTime(or(created)) {
				return nil
			}
			return s.put(i.GetID(), &issueRecord{
				ID: key(i.GetID()), Repository: r.Name, Number: i.GetNumber(), Title: i.Title, Body: i.Body, State: i.State,
				StateReason: i.StateReason, Author: login(i.User), Assignees: logins(i.Assignees), Labels: labels(i.Labels),
				Milestone: text(i.GetMilestone().GetTitle()), Comments: i.GetComments(), Locked: i.GetLocked(), URL: i.HTMLURL,
				CreatedAt: created, UpdatedAt: moment(i.UpdatedAt), ClosedAt: moment(i.ClosedAt),
			})
		})
	return unlessDisabled(err)
}

// unlessDisabled takes issues that are turned off for none.
func unlessDisabled(err error) error {
	if e, ok := errors.AsType[*github.ErrorResponse](err); ok && e.Response.StatusCode == http.StatusGone {
		return nil
	}
	return err
}

type pullRequestRecord struct {
	ID         string   `json:"id"`
	Repository string   `json:"repository"`
	Number     int      `json:"number"`
	Title      *string  `json:"title"`
	Body       *string  `json:"body"`
	State      *string  `json:"state"`
	Draft      bool     `json:"draft"`
	Author     *string  `json:"author"`
	Assignees  []string `json:"assignees"`
	Reviewers  []string `json:"reviewers"`
	Labels     []string `json:"labels"`
	Milestone  *string  `json:"milestone"`
	Head       *string  `json:"head"`
	Base       *string  `json:"base"`
	MergedAs   *string  `json:"merged_as"`
	URL        *string  `json:"url"`
	CreatedAt  *string  `json:"created_at"`
	UpdatedAt  *string  `json:"updated_at"`
	ClosedAt   *string  `json:"closed_at"`
	MergedAt   *string  `json:"merged_at"`
}

func (c *collection) collectPullRequests(ctx context.Context, s *stream, r repository, m *mark) error {
	return recent(ctx, c, m, s.floor,
		func(ctx context.Context, o github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
			return c.client.PullRequests.List(ctx, r.owner(), r.name(),
				&github.PullRequestListOptions{State: "all", Sort: "updated", Direction: "desc", ListOptions: o})
		}, func(p *github.PullRequest) error {
			created := moment(p.CreatedAt)
			if !s.AdmitsTime(or(created)) {
				return nil
			}
			record := &pullRequestRecord{
				ID: key(p.GetID()), Repository: r.Name, Number: p.GetNumber(), Title: p.Title, Body: p.Body, State: p.State,
				Draft: p.GetDraft(), Author: login(p.User), Assignees: logins(p.Assignees), Reviewers: logins(p.RequestedReviewers),
				Labels: labels(p.Labels), Milestone: text(p.GetMilestone().GetTitle()), Head: text(p.GetHead().GetLabel()),
				Base: text(p.GetBase().GetRef()), URL: p.HTMLURL, CreatedAt: created, UpdatedAt: moment(p.UpdatedAt),
				ClosedAt: moment(p.ClosedAt), MergedAt: moment(p.MergedAt),
			}
			if record.MergedAt != nil { // before, it is that of a trial
				record.MergedAs = p.MergeCommitSHA
			}
			return s.put(p.GetID(), record)
		})
}

type commentRecord struct {
	ID         string  `json:"id"`
	Repository string  `json:"repository"`
	Issue      *int    `json:"issue"`
	Author     *string `json:"author"`
	Body       *string `json:"body"`
	URL        *string `json:"url"`
	CreatedAt  *string `json:"created_at"`
	UpdatedAt  *string `json:"updated_at"`
}

// collectComments collects the comments of all issues and pull requests of a
// repository from one list.
func (c *collection) collectComments(ctx context.Context, s *stream, r repository, m *mark) error {
	err := since(ctx, c, m, s.floor,
		func(ctx context.Context, from time.Time, o github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
			opts := &github.IssueListCommentsOptions{Sort: github.Ptr("updated"), Direction: github.Ptr("asc"), ListOptions: o}
			if !from.IsZero() {
				opts.Since = &from
			}
			return c.client.Issues.ListComments(ctx, r.owner(), r.name(), 0, opts)
		}, func(i *github.IssueComment) error {
			created := moment(i.CreatedAt)
			if !s.AdmitsTime(or(created)) {
				return nil
			}
			return s.put(i.GetID(), &commentRecord{
				ID: key(i.GetID()), Repository: r.Name, Issue: numberOf(i.GetIssueURL()), Author: login(i.User),
				Body: i.Body, URL: i.HTMLURL, CreatedAt: created, UpdatedAt: moment(i.UpdatedAt),
			})
		})
	return unlessDisabled(err)
}

type reviewCommentRecord struct {
	ID          string  `json:"id"`
	Repository  string  `json:"repository"`
	PullRequest *int    `json:"pull_request"`
	InReplyTo   *string `json:"in_reply_to"`
	Author      *string `json:"author"`
	Body        *string `json:"body"`
	Path        *string `json:"path"`
	Line        *int    `json:"line"`
	Commit      *string `json:"commit"`
	DiffHunk    *string `json:"diff_hunk"`
	URL         *string `json:"url"`
	CreatedAt   *string `json:"created_at"`
	UpdatedAt   *string `json:"updated_at"`
}

func (c *collection) collectReviewComments(ctx context.Context, s *stream, r repository, m *mark) error {
	return since(ctx, c, m, s.floor,
		func(ctx context.Context, from time.Time, o github.ListOptions) ([]*github.PullRequestComment,
			*github.Response, error) {
			return c.client.PullRequests.ListComments(ctx, r.owner(), r.name(), 0,
				&github.PullRequestListCommentsOptions{Sort: "updated", Direction: "asc", Since: from, ListOptions: o})
		}, func(i *github.PullRequestComment) error {
			created := moment(i.CreatedAt)
			if !s.AdmitsTime(or(created)) {
				return nil
			}
			record := &reviewCommentRecord{
				ID: key(i.GetID()), Repository: r.Name, PullRequest: numberOf(i.GetPullRequestURL()),
				Author: login(i.User), Body: i.Body, Path: i.Path, Line: i.Line, Commit: i.CommitID,
				DiffHunk: i.DiffHunk, URL: i.HTMLURL, CreatedAt: created, UpdatedAt: moment(i.UpdatedAt),
			}
			if i.InReplyTo != nil {
				record.InReplyTo = github.Ptr(key(*i.InReplyTo))
			}
			return s.put(i.GetID(), record)
		})
}

// numberOf is the number at the end of an API's address, nil if there is none.
func numberOf(url string) *int {
	n, err := strconv.Atoi(path.Base(url))
	if err != nil {
		return nil
	}
	return &n
}
