package main

import (
	"context"
	"errors"

	"github.com/google/go-github/v88/github"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

type releaseRecord struct {
	ID          string  `json:"id"`
	Repository  string  `json:"repository"`
	Tag         *string `json:"tag"`
	Name        *string `json:"name"`
	Body        *string `json:"body"`
	Draft       bool    `json:"draft"`
	Prerelease  bool    `json:"prerelease"`
	Author      *string `json:"author"`
	Assets      []asset `json:"assets"`
	URL         *string `json:"url"`
	CreatedAt   *string `json:"created_at"`
	PublishedAt *string `json:"published_at"`
}

type asset struct {
	Name      *string `json:"name"`
	Size      int     `json:"size"`
	Downloads int     `json:"downloads"`
	URL       *string `json:"url"`
}

// collectReleases collects all releases of a repository, a full inventory.
func (c *collection) collectReleases(ctx context.Context, s *stream, r repository, m *mark) error {
	var emitted []int64
	got, err := list(ctx, c, m.ETag,
		func(ctx context.Context, o github.ListOptions) ([]*github.RepositoryRelease, *github.Response, error) {
			return c.client.Repositories.ListReleases(ctx, r.owner(), r.name(), &o)
		}, func(i *github.RepositoryRelease) error {
			published := moment(i.PublishedAt)
			if !s.AdmitsTime(or(published)) {
				return nil
			}
			emitted = append(emitted, i.GetID())
			return s.put(i.GetID(), &releaseRecord{
				ID: key(i.GetID()), Repository: r.Name, Tag: i.TagName, Name: i.Name, Body: i.Body, Draft: i.GetDraft(),
				Prerelease: i.GetPrerelease(), Author: login(i.Author), Assets: assets(i.Assets), URL: i.HTMLURL,
				CreatedAt: moment(i.CreatedAt), PublishedAt: published,
			})
		})
	if err != nil || got.unchanged {
		partly(&m.ETag, &m.IDs, emitted)
		return err
	}
	m.ETag = got.etag
	m.IDs, err = s.settle(m.IDs, emitted, got.there)
	return err
}

func assets(all []*github.ReleaseAsset) []asset {
	out := []asset{}
	for _, a := range all {
		if a != nil {
			out = append(out, asset{Name: a.Name, Size: a.GetSize(), Downloads: a.GetDownloadCount(), URL: a.BrowserDownloadURL})
		}
	}
	return out
}

type starRecord struct {
	ID          string   `json:"id"`
	FullName    string   `json:"full_name"`
	Description *string  `json:"description"`
	Language    *string  `json:"language"`
	Topics      []string `json:"topics"`
	URL         *string  `json:"url"`
	StarredAt   *string  `json:"starred_at"`
}

// A star is a starred repository with the id of that.
type star struct{ *github.StarredRepository }

func (s star) GetID() int64 { return s.StarredRepository.GetRepository().GetID() }

// collectStars collects what the user has starred, a full inventory: a star
// that was taken back is deleted.
func (c *collection) collectStars(ctx context.Context, s *stream) error {
	if err := c.run.Progress("Collecting stars", guest.OnStream(s.name)); err != nil {
		return err
	}
	var emitted []int64
	got, err := list(ctx, c, s.ETag, func(ctx context.Context, o github.ListOptions) ([]star, *github.Response, error) {
		page, resp, err := c.client.Activity.ListStarred(ctx, c.set.user,
			&github.ActivityListStarredOptions{Sort: "created", Direction: "desc", ListOptions: o})
		if page == nil {
			return nil, resp, err
		}
		stars := make([]star, len(page))
		for i := range page {
			stars[i] = star{page[i]}
		}
		return stars, resp, err
	}, func(i star) error {
		r, at := i.GetRepository(), moment(i.StarredAt)
		if !s.Admits(r.GetFullName(), key(r.GetID())) || !s.AdmitsTime(or(at)) {
			return nil
		}
		emitted = append(emitted, r.GetID())
		return s.put(r.GetID(), &starRecord{
			ID: key(r.GetID()), FullName: r.GetFullName(), Description: r.Description, Language: r.Language,
			Topics: texts(r.Topics), URL: r.HTMLURL, StarredAt: at,
		})
	})
	switch {
	case errors.Is(err, errExhausted):
		partly(&s.ETag, &s.IDs, emitted)
		err = c.later(s.name, 0)
	case err != nil:
		partly(&s.ETag, &s.IDs, emitted)
		err = c.note(s.name, "stars", err)
	case got.unchanged:
		c.answered++
	default:
		c.answered++
		s.ETag = got.etag
		s.IDs, err = s.settle(s.IDs, emitted, got.there)
	}
	if err != nil {
		return err
	}
	return s.checkpoint()
}
