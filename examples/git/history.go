package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/go-git/go-git/v5/plumbing"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// checkpointEvery is how many commits lie between two cursors.
const checkpointEvery = 1000

// A history collects commits and their files.
type history struct {
	run     *guest.Run
	repo    *repository
	set     settings
	commits *stream     // nil: not in scope
	files   *fileWriter // nil: not in scope, or switched off
	shape   string
	done    map[plumbing.Hash]bool // tips of what is collected
	whole   bool                   // no commit is missing
}

// collectHistory emits the commits that are new since the last run.
func collectHistory(ctx context.Context, run *guest.Run, repo *repository, refs *refSet, set settings) error {
	h := &history{run: run, repo: repo, set: set, commits: openStream(run, "commits"), done: map[plumbing.Hash]bool{}}
	files := openStream(run, "files")
	if files != nil && set.files() {
		h.files = newFileWriter(files, repo, set.MaxFiles)
	}
	if h.commits == nil && h.files == nil {
		return nil
	}
	h.shape = shapeOf(h.commits.shape(), files.shape(), set.files(), set.FirstParent, set.MaxFiles, repo.shallowDigest())
	tips, err := repo.tips(refs)
	if err != nil {
		return err
	}
	g, err := h.grow(tips)
	if err != nil {
		return err
	}
	left, err := h.emit(ctx, newOrder(g))
	if err != nil {
		return err
	}
	if left == 0 {
		h.done = map[plumbing.Hash]bool{}
		for _, t := range tips {
			h.done[t] = true
		}
	}
	return errors.Join(h.checkpoint(), h.report(g.missing, left))
}

// tips returns the commits that branches, tags and HEAD name.
func (r *repository) tips(set *refSet) ([]plumbing.Hash, error) {
	var tips []plumbing.Hash
	seen := map[plumbing.Hash]bool{plumbing.ZeroHash: true}
	add := func(h plumbing.Hash) {
		if !seen[h] {
			seen[h] = true
			tips = append(tips, h)
		}
	}
	add(set.tip)
	for _, one := range set.all {
		if seen[one.hash] {
			continue
		}
		if !one.name.IsTag() {
			add(one.hash)
			continue
		}
		p, err := r.peel(one.hash)
		if err != nil {
			return nil, err
		}
		if p.commit != nil {
			add(p.target)
		}
	}
	return tips, nil
}

// grow finds what is new.
func (h *history) grow(tips []plumbing.Hash) (*graph, error) {
	g := newGraph(h.repo, h.set.FirstParent)
	known := h.known()
	err := g.grow(tips, known, func(read int) error {
		return h.run.Progress(fmt.Sprintf("Read the history: %d commits so far", read))
	})
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	for _, k := range known {
		if _, exists := g.index[k]; exists {
			h.done[k] = true
		}
	}
	h.whole = g.missing == 0
	return g, nil
}

// known returns the tips of the last run.
func (h *history) known() []plumbing.Hash {
	if h.commits == nil || !h.run.Incremental() {
		return nil
	}
	var last commitCursor
	if ok, err := h.run.State("commits", &last); err != nil || !ok {
		return nil // none, or of another version: start anew
	}
	return last.known(h.shape)
}

// emit emits the commits in order and returns how many are left for the next
// run.
func (h *history) emit(ctx context.Context, o *order) (left int, err error) {
	total := o.total
	if limit := h.set.MaxCommits; limit > 0 && h.commits != nil && h.whole { // else there is no cursor to go on from
		total = min(total, limit)
	}
	for n := 1; n <= total; n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		hash, ok := o.next()
		if !ok {
			return 0, errors.New("history has a cycle")
		}
		runtime.Gosched() // see softMemory
		if err := h.one(hash); err != nil {
			return 0, err
		}
		if err := h.passed(n, total); err != nil {
			return 0, err
		}
	}
	return o.total - total, nil
}

// passed is called after every commit: now and then there is a cursor and a word
// to the owner.
func (h *history) passed(n, total int) error {
	if n%checkpointEvery != 0 && n != total {
		return nil
	}
	if n != total { // the last cursor is another one
		if err := h.checkpoint(); err != nil {
			return err
		}
	}
	return h.run.Progress(fmt.Sprintf("Collected %d of %d commits", n, total), guest.Count(n), guest.Total(total))
}

// one emits one commit and its files, and moves the tips up to it.
func (h *history) one(hash plumbing.Hash) error {
	c, err := h.repo.commit(hash)
	if err != nil {
		return fmt.Errorf("read commit: %w", err)
	}
	if h.commits != nil {
		if err := h.commits.emitCommit(c); err != nil {
			return err
		}
	}
	if h.files != nil {
		if err := h.files.write(c); err != nil {
			return err
		}
	}
	for _, p := range c.ParentHashes {
		delete(h.done, p)
	}
	h.done[hash] = true
	return nil
}

// checkpoint stages the cursor. The files have none of their own: theirs is that
// of the commits. While commits are missing the old cursor stays, so that they
// are found when they turn up.
func (h *history) checkpoint() error {
	if h.commits == nil || !h.whole {
		return nil
	}
	return h.run.Checkpoint("commits", newCommitCursor(h.shape, h.done))
}

// report says what was not collected.
func (h *history) report(missing, left int) error {
	stream := "commits"
	if h.commits == nil {
		stream = "files"
	}
	if missing > 0 {
		err := h.run.Skip(guest.Skip{Stream: stream, Reason: "objects_missing",
			Message: fmt.Sprintf("%d commits that the history names are not in the repository.", missing)})
		if err != nil {
			return err
		}
	}
	if left > 0 {
		n := int64(h.set.MaxCommits)
		err := h.run.Skip(guest.Skip{Stream: stream, Reason: "page_limit",
			Message:      fmt.Sprintf("%d commits are left for the next run.", left),
			RecoveryHint: &guest.Hint{Action: guest.RetryByRuntime},
			Continuation: &guest.Continuation{Boundary: "commits", SliceStart: 0, SliceEnd: n, Considered: n, Covered: n}})
		if err != nil {
			return err
		}
	}
	if h.files == nil {
		return nil
	}
	return h.reportFiles()
}

func (h *history) reportFiles() error {
	gaps := &h.files.gaps
	for _, g := range []struct {
		list    *commitList
		reason  string
		message string
	}{
		{&gaps.shallow, "shallow_boundary", "%d commits at the end of a shallow clone have no parent to compare with."},
		{&gaps.large, "diff_too_large", "%d commits change too many files."},
		{&gaps.missing, "objects_missing", "%d commits have files that are not in the repository."},
	} {
		if g.list.count == 0 {
			continue
		}
		err := h.run.Skip(guest.Skip{Stream: "files", Reason: g.reason,
			Message: fmt.Sprintf(g.message, g.list.count), ResourceIDs: g.list.names()})
		if err != nil {
			return err
		}
	}
	return nil
}
