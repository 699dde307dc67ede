package main

import (
	"context"
	"net/url"
	"path"
	"strings"
)

// A discovery finds collections from one URL (RFC 6764): at the URL itself, at
// the principal that it names, at the well-known places of the server.
type discovery struct {
	client *client
	start  *url.URL
	seen   map[string]*found // by URL
}

// found is what a resource says of itself, or why it says nothing.
type found struct {
	url   *url.URL // that answered
	props *props
	err   error
}

// A collection is a calendar or an address book.
type collection struct {
	url      *url.URL
	path     string // decoded; names it among all
	props    *props
	readOnly bool
}

func (c *collection) syncs() bool {
	if c.props.Token != "" {
		return true
	}
	for _, r := range c.props.Reports {
		if r.Sync != nil {
			return true
		}
	}
	return false
}

// maxCollections of a kind; with more, a cursor could not hold their tokens.
const maxCollections = 150

// collections lists those of a kind. whole says that there are no others.
func (d *discovery) collections(ctx context.Context, k *kind) (list []*collection, whole bool, err error) {
	homes, one, err := d.homes(ctx, k)
	if err != nil {
		return nil, false, err
	}
	if one != nil {
		return []*collection{one}, true, nil
	}
	var first error
	seen := map[string]bool{}
	whole = true
	for _, home := range homes {
		err := d.list(ctx, k, home, func(c *collection) {
			if !seen[c.path] && len(list) < maxCollections {
				seen[c.path] = true
				list = append(list, c)
			}
		})
		if err != nil && lasting(err) {
			return nil, false, err
		}
		if err != nil && first == nil {
			first = err
		}
		whole = whole && err == nil
	}
	if len(list) == 0 && first != nil {
		return nil, false, first
	}
	return list, whole && len(list) < maxCollections, nil
}

// homes finds where a user's collections are, or that the URL is one itself.
func (d *discovery) homes(ctx context.Context, k *kind) (homes []*url.URL, one *collection, err error) {
	var first error
	for _, start := range []*url.URL{d.start, {Scheme: d.start.Scheme, Host: d.start.Host, Path: k.wellKnown}} {
		self := d.look(ctx, start)
		if self.err != nil {
			if first == nil {
				first = self.err
			}
			if lasting(self.err) {
				return nil, nil, self.err
			}
			continue
		}
		if c := collectionAt(k, self.url, self.props); c != nil && start == d.start {
			return nil, c, nil
		}
		if homes := homesOf(k, self); homes != nil {
			return homes, nil, nil
		}
		for _, href := range self.props.Principal.Hrefs {
			u, ok := resolve(self.url, href)
			if !ok {
				continue
			}
			principal := d.look(ctx, u)
			if principal.err != nil {
				return nil, nil, principal.err
			}
			if homes := homesOf(k, principal); homes != nil {
				return homes, nil, nil
			}
		}
	}
	if first != nil {
		return nil, nil, first
	}
	return nil, nil, troublef(reasonNotOffered, "%s: the server names no %ss of this user", d.start.Redacted(), k.name)
}

// look asks a resource for its properties, once.
func (d *discovery) look(ctx context.Context, u *url.URL) *found {
	if f := d.seen[u.String()]; f != nil {
		return f
	}
	f := &found{props: &props{}}
	_, f.err = d.client.multistatus(ctx, ask{method: "PROPFIND", url: u, depth: "0", body: askProps},
		func(base *url.URL, r *response) error {
			if p, ok := r.found(); ok && f.url == nil {
				f.url, f.props = base, p
			}
			return nil
		})
	if f.err == nil && f.url == nil {
		f.err = troublef(reasonMalformed, "PROPFIND %s: the answer says nothing of it", u.Redacted())
	}
	d.seen[u.String()] = f
	return f
}

func homesOf(k *kind, f *found) []*url.URL {
	hrefs := f.props.Calendars.Hrefs
	if k.multiget == addressbookMultiget {
		hrefs = f.props.Books.Hrefs
	}
	var out []*url.URL
	for _, href := range hrefs {
		if u, ok := resolve(f.url, href); ok && len(out) < 8 {
			out = append(out, u)
		}
	}
	return out
}

// list yields the collections of a kind in a home.
func (d *discovery) list(ctx context.Context, k *kind, home *url.URL, yield func(*collection)) error {
	answered := false
	_, err := d.client.multistatus(ctx, ask{method: "PROPFIND", url: home, depth: "1", body: askProps},
		func(base *url.URL, r *response) error {
			p, ok := r.found()
			if !ok || len(r.Hrefs) == 0 {
				return nil
			}
			u, ok := resolve(base, r.Hrefs[0])
			if !ok {
				return nil
			}
			c := collectionAt(k, u, p)
			answered = answered || c != nil || folder(u) == folder(base)
			if c != nil {
				yield(c)
			}
			return nil
		})
	if err == nil && !answered { // the home itself would be there: no proof that all is gone
		return troublef(reasonMalformed, "PROPFIND %s: the answer says nothing of it", home.Redacted())
	}
	return err
}

// collectionAt is the collection of a kind that a resource is, or nil.
func collectionAt(k *kind, u *url.URL, p *props) *collection {
	is := p.Type.Calendar != nil
	if k.multiget == addressbookMultiget {
		is = p.Type.Addressbook != nil
	}
	if !is {
		return nil
	}
	c := &collection{url: u, path: folder(u), props: p, readOnly: len(p.Privileges) > 0}
	for _, g := range p.Privileges {
		if g.Write != nil || g.Content != nil || g.All != nil {
			c.readOnly = false
		}
	}
	return c
}

// folder is the path of a collection: with one slash at its end.
func folder(u *url.URL) string {
	return strings.TrimSuffix(path.Clean("/"+u.Path), "/") + "/"
}
