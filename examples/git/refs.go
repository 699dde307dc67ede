package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxSymbolic bounds how many symbolic refs lead to each other, as in git.
const maxSymbolic = 5

// A ref is a branch, remote branch or tag.
type ref struct {
	name     plumbing.ReferenceName
	hash     plumbing.Hash          // zero: what it stands for does not exist
	symbolic plumbing.ReferenceName // what it stands for, or empty
}

// A refSet is all refs at one moment.
type refSet struct {
	head plumbing.ReferenceName // the branch checked out; empty when detached
	tip  plumbing.Hash          // what is checked out; zero in an empty repository
	all  []ref                  // branches, remote branches and tags by name
}

// refs reads the refs.
func (r *repository) refs() (*refSet, error) {
	list, err := r.dot.Refs()
	if errors.Is(err, fs.ErrNotExist) {
		list, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read refs: %w", err)
	}
	byName := make(map[plumbing.ReferenceName]*plumbing.Reference, len(list))
	for _, l := range list {
		byName[l.Name()] = l
	}
	set := &refSet{}
	if head := byName[plumbing.HEAD]; head != nil {
		if head.Type() == plumbing.SymbolicReference {
			set.head = head.Target()
		}
		set.tip = resolve(byName, head)
	}
	for _, l := range list {
		if n := l.Name(); !n.IsBranch() && !n.IsRemote() && !n.IsTag() {
			continue
		}
		one := ref{name: l.Name(), hash: resolve(byName, l)}
		if l.Type() == plumbing.SymbolicReference {
			one.symbolic = l.Target()
		}
		if one.symbolic == "" && one.hash.IsZero() {
			continue // a damaged file
		}
		set.all = append(set.all, one)
	}
	slices.SortFunc(set.all, func(a, b ref) int { return strings.Compare(string(a.name), string(b.name)) })
	return set, nil
}

func resolve(byName map[plumbing.ReferenceName]*plumbing.Reference, r *plumbing.Reference) plumbing.Hash {
	for range maxSymbolic {
		if r == nil {
			break
		}
		if r.Type() == plumbing.HashReference {
			return r.Hash()
		}
		r = byName[r.Target()]
	}
	return plumbing.ZeroHash
}

// collectRefs emits the branches and deletes those that are gone.
func collectRefs(s *stream, set *refSet) error {
	var names []string
	for _, r := range set.all {
		if r.name.IsTag() {
			continue
		}
		name := utf8Name(string(r.name))
		names = append(names, name)
		if !s.Admits(name) {
			continue
		}
		row := s.row()
		row.text("name", name)
		row.text("short_name", repaired(r.name.Short()))
		row.text("kind", kindOf(r.name))
		row.textOrNull("remote", remoteOf(r.name))
		row.textOrNull("target", hashText(r.hash))
		row.textOrNull("symbolic_target", repaired(string(r.symbolic)))
		row.flag("is_head", r.name == set.head)
		if err := row.emit(name); err != nil {
			return err
		}
	}
	return s.forget(names)
}

func kindOf(name plumbing.ReferenceName) string {
	if name.IsRemote() {
		return "remote_branch"
	}
	return "branch"
}

// remoteOf returns the remote of a remote branch, taken to be one path segment.
func remoteOf(name plumbing.ReferenceName) string {
	if !name.IsRemote() {
		return ""
	}
	remote, _, _ := strings.Cut(strings.TrimPrefix(string(name), "refs/remotes/"), "/")
	return repaired(remote)
}

func hashText(h plumbing.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}
