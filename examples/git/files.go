package main

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A fileWriter emits the files that commits changed.
type fileWriter struct {
	*stream
	repo     *repository
	compare  comparer
	counter  counter
	trees    *recent[plumbing.Hash, plumbing.Hash] // of commits
	counting bool                                  // the scope admits what takes reading files
	gaps     fileGaps
}

// fileGaps counts what a walk could not collect.
type fileGaps struct{ shallow, large, missing commitList }

func newFileWriter(s *stream, repo *repository, max int) *fileWriter {
	return &fileWriter{
		stream: s, repo: repo,
		compare:  comparer{objects: repo.objects, max: max},
		counter:  counter{objects: repo.objects, lines: newLineCounter()},
		trees:    newRecent[plumbing.Hash](1<<20, func(plumbing.Hash) int { return 64 }),
		counting: s.Wants("additions") || s.Wants("deletions") || s.Wants("binary"),
	}
}

// write emits the files of one commit: what differs from its first parent.
func (w *fileWriter) write(c *object.Commit) error {
	when := timeText(c.Committer.When)
	if !w.AdmitsTime(when) {
		return nil
	}
	if w.repo.shallow[c.Hash] && len(c.ParentHashes) > 0 {
		w.gaps.shallow.add(c.Hash)
		return nil
	}
	w.trees.put(c.Hash, c.TreeHash)
	changes, err := w.changes(c)
	switch {
	case errors.Is(err, errTooMany), errors.Is(err, errTooLarge):
		w.gaps.large.add(c.Hash)
		return nil
	case errors.Is(err, plumbing.ErrObjectNotFound):
		w.gaps.missing.add(c.Hash)
		return nil
	case err != nil:
		return fmt.Errorf("files of commit %s: %w", c.Hash, err)
	}
	lacking := w.counter.lacking
	for _, ch := range changes {
		if err := w.emitChange(c, ch, when); err != nil {
			return err
		}
	}
	if w.counter.lacking > lacking {
		w.gaps.missing.add(c.Hash)
	}
	return nil
}

func (w *fileWriter) changes(c *object.Commit) ([]change, error) {
	var parent plumbing.Hash
	if len(c.ParentHashes) > 0 {
		var err error
		if parent, err = w.treeOf(c.ParentHashes[0]); err != nil {
			return nil, err
		}
	}
	changes, err := w.compare.compare(parent, c.TreeHash)
	if err != nil {
		return nil, err
	}
	return w.counter.findRenames(changes)
}

func (w *fileWriter) treeOf(h plumbing.Hash) (plumbing.Hash, error) {
	if t, ok := w.trees.get(h); ok {
		return t, nil
	}
	c, err := w.repo.commit(h)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	w.trees.put(h, c.TreeHash)
	return c.TreeHash, nil
}

func (w *fileWriter) emitChange(c *object.Commit, ch change, when string) error {
	raw := ch.to.path
	if ch.to == (entry{}) {
		raw = ch.from.path
	}
	path := cut(repaired(raw), maxShort)
	key := fileKey(c.Hash, raw)
	if !w.Admits(key, path) {
		return nil
	}
	m := measure{lineCount: unknownLines}
	if w.counting {
		var err error
		if m, err = w.counter.measure(ch); err != nil {
			return fmt.Errorf("file %s of commit %s: %w", path, c.Hash, err)
		}
	}
	row := w.row()
	row.text("id", key)
	row.text("commit", c.Hash.String())
	row.text("path", path)
	old := ""
	if ch.renamed {
		old = cut(repaired(ch.from.path), maxShort)
	}
	row.textOrNull("old_path", old)
	row.text("status", ch.status())
	mode := ""
	if ch.to != (entry{}) {
		mode = fmt.Sprintf("%06o", uint32(ch.to.mode))
	}
	row.textOrNull("mode", mode)
	row.count("additions", m.added)
	row.count("deletions", m.deleted)
	row.flag("binary", m.binary)
	row.textOrNull("committed_at", when)
	return row.emit(key)
}

// fileKey is the commit and the path, or a digest of the path when it is too long for a
// key or not valid in one.
func fileKey(commit plumbing.Hash, path string) string {
	if len(path) > maxKey-2*hashSize-1 || !utf8.ValidString(path) {
		path = "sha256-" + digest(path)
	}
	return commit.String() + ":" + path
}

func (ch change) status() string {
	switch {
	case ch.renamed:
		return "renamed"
	case ch.from == entry{}:
		return "added"
	case ch.to == entry{}:
		return "deleted"
	case kindOfFile(ch.from.mode) != kindOfFile(ch.to.mode):
		return "type_changed"
	default:
		return "modified"
	}
}

func kindOfFile(m filemode.FileMode) filemode.FileMode {
	if regular(m) {
		return filemode.Regular
	}
	return m
}

// A commitList counts commits and names the first of them.
type commitList struct {
	count int
	first []string
}

func (l *commitList) add(h plumbing.Hash) {
	if l.count++; len(l.first) < 20 {
		l.first = append(l.first, h.String())
	}
}

func (l *commitList) names() []string { return slices.Clone(l.first) }
