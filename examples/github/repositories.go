package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v88/github"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A repository is one to collect from.
type repository struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`           // OWNER/NAME, as GitHub has it now
	As   string `json:"as,omitempty"`   // as the settings have it
	ETag string `json:"etag,omitempty"` // of the answer about it alone
}

func (r repository) owner() string { owner, _, _ := strings.Cut(r.Name, "/"); return owner }
func (r repository) name() string  { _, name, _ := strings.Cut(r.Name, "/"); return name }

type repositoryRecord struct {
	ID            string   `json:"id"`
	FullName      string   `json:"full_name"`
	Owner         *string  `json:"owner"`
	Description   *string  `json:"description"`
	URL           *string  `json:"url"`
	Homepage      *string  `json:"homepage"`
	Language      *string  `json:"language"`
	Topics        []string `json:"topics"`
	License       *string  `json:"license"`
	DefaultBranch *string  `json:"default_branch"`
	Private       bool     `json:"private"`
	Fork          bool     `json:"fork"`
	Archived      bool     `json:"archived"`
	Stars         int      `json:"stars"`
	Forks         int      `json:"forks"`
	OpenIssues    int      `json:"open_issues"`
	CreatedAt     *string  `json:"created_at"`
	UpdatedAt     *string  `json:"updated_at"`
	PushedAt      *string  `json:"pushed_at"`
}

// collectRepositories finds out which there are; s is nil when they are not in
// scope themselves.
func (c *collection) collectRepositories(ctx context.Context, s *stream) error {
	if err := c.run.Progress("Looking for repositories"); err != nil {
		return err
	}
	c.complete = true
	find := c.owned
	if len(c.set.repositories) > 0 {
		find = c.named
	}
	if err := find(ctx, s); err != nil {
		return err
	}
	if len(c.repositories) > maxRepositories {
		c.missing("all others", &trouble{"too_many_repositories", guest.UpdateSelector, false,
			fmt.Errorf("of %d repositories only the %d newest are collected from: name those you want in the settings",
				len(c.repositories), maxRepositories)})
		c.repositories = c.repositories[:maxRepositories]
	}
	c.unmatched()
	if s == nil {
		return nil
	}
	return s.checkpoint()
}

// owned collects all repositories of the user, a full inventory.
func (c *collection) owned(ctx context.Context, s *stream) error {
	var known cursor
	if s != nil {
		known = s.cursor
	}
	var emitted []int64
	got, err := list(ctx, c, known.ETag,
		func(ctx context.Context, o github.ListOptions) ([]*github.Repository, *github.Response, error) {
			if c.set.user == "" {
				return c.client.Repositories.ListByAuthenticatedUser(ctx,
					&github.RepositoryListByAuthenticatedUserOptions{Affiliation: "owner", Sort: "created",
						Direction: "desc", ListOptions: o})
			}
			return c.client.Repositories.ListByUser(ctx, c.set.user,
				&github.RepositoryListByUserOptions{Type: "owner", Sort: "created", Direction: "desc", ListOptions: o})
		}, func(r *github.Repository) error {
			ok, err := c.take(s, r, repository{})
			if ok {
				emitted = append(emitted, r.GetID())
			}
			return err
		})
	switch {
	case err != nil:
		return unlisted(err)
	case got.unchanged:
		c.repositories = known.Repositories
	case s != nil:
		if s.IDs, err = s.settle(known.IDs, emitted, got.there); err != nil {
			return err
		}
		s.ETag, s.Repositories = got.etag, nil
		if got.etag != "" {
			s.Repositories = c.repositories
		}
	}
	c.answered++
	return nil
}

// unlisted ends a run that cannot know what to collect from.
func unlisted(err error) error {
	if t, ok := err.(*trouble); ok {
		return guest.Fail(t.reason, t.retryable, t.hint, "the repositories cannot be listed: %w", t)
	}
	if errors.Is(err, errExhausted) {
		return guest.Fail("request_limit", false, guest.ManualActionRequired,
			"max_requests is too low to list the repositories")
	}
	return err
}

// named collects the repositories that the settings name. A missing one may be deleted,
// renamed and replaced, or closed to this token: it is left out, and its records stay.
func (c *collection) named(ctx context.Context, s *stream) error {
	known := map[string]repository{}
	if s != nil {
		for _, r := range s.Repositories {
			known[r.As] = r
		}
	}
	seen := map[int64]bool{}
	for i, name := range c.set.repositories {
		asked := repository{Name: name}
		a, err := ask(ctx, c, known[name].ETag, func(ctx context.Context) ([]*github.Repository, *github.Response, error) {
			r, resp, err := c.client.Repositories.Get(ctx, asked.owner(), asked.name())
			if err == nil && r.GetID() <= 0 {
				return nil, resp, nil
			}
			return []*github.Repository{r}, resp, err
		})
		if t, ok := err.(*trouble); ok {
			c.missing(name, t)
			continue
		}
		if errors.Is(err, errExhausted) {
			c.complete = false
			if s == nil {
				break
			}
			return c.later(s.name, i)
		}
		if err != nil {
			return err
		}
		c.answered++
		found := known[name]
		if !a.unchanged {
			found = repository{ID: a.items[0].GetID(), As: name, ETag: a.etag}
		}
		switch {
		case seen[found.ID]: // by its old name, too
		case a.unchanged:
			c.repositories = append(c.repositories, found)
		default:
			if _, err := c.take(s, a.items[0], found); err != nil {
				return err
			}
		}
		seen[found.ID] = true
	}
	if s != nil {
		s.Repositories = c.repositories
	}
	return nil
}

// take notes a repository and emits its record, if the scope admits it.
func (c *collection) take(s *stream, r *github.Repository, as repository) (emitted bool, err error) {
	as.ID, as.Name = r.GetID(), r.GetFullName()
	if !isFullName(as.Name) {
		c.missing(key(as.ID), &trouble{"answer_unreadable", guest.RetryByRuntime, true,
			fmt.Errorf("%.80q is no name of a repository", as.Name)})
		return false, nil
	}
	c.repositories = append(c.repositories, as)
	record := repositoryOf(r)
	if s == nil || !s.Admits(as.Name, record.ID) || !s.AdmitsTime(or(record.CreatedAt)) {
		return false, nil
	}
	return true, s.put(as.ID, record)
}

func repositoryOf(r *github.Repository) *repositoryRecord {
	return &repositoryRecord{
		ID: key(r.GetID()), FullName: r.GetFullName(), Owner: login(r.Owner), Description: r.Description, URL: r.HTMLURL,
		Homepage: r.Homepage, Language: r.Language, Topics: texts(r.Topics), License: text(r.GetLicense().GetSPDXID()),
		DefaultBranch: r.DefaultBranch, Private: r.GetPrivate(), Fork: r.GetFork(), Archived: r.GetArchived(),
		Stars: r.GetStargazersCount(), Forks: r.GetForksCount(), OpenIssues: r.GetOpenIssuesCount(),
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt), PushedAt: moment(r.PushedAt),
	}
}

// missing notes a trouble that a repository has in all streams that it belongs
// to.
func (c *collection) missing(name string, t *trouble) {
	c.complete = false
	for _, s := range c.run.Scope().Streams {
		if f, ok := c.run.Filter(s.Name); ok && s.Name != "stars" && f.Admits(name) {
			c.troubles = append(c.troubles, noted{t, s.Name, name})
		}
	}
}

// unmatched notes the resources of the scope that no repository has as its name.
func (c *collection) unmatched() {
	if !c.complete {
		return
	}
	there := map[string]bool{}
	for _, r := range c.repositories {
		there[r.Name], there[key(r.ID)] = true, true
	}
	for _, s := range c.run.Scope().Streams {
		for _, name := range s.Resources {
			if s.Name == "stars" || there[name] {
				continue
			}
			c.troubles = append(c.troubles, noted{&trouble{"scope_not_supported", guest.UpdateSelector, false,
				fmt.Errorf("no repository has this name now; resources are full names, as GitHub spells them")}, s.Name, name})
		}
	}
}
