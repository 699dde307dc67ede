// Command git is a connector that collects the history of a mounted git
// repository: commits, the files they changed, branches and tags.
//
// It reads plain files and trusts none of them: sizes are bounded before memory
// is taken, and what is malformed is an error or a gap. go-git decodes commits,
// tags, deltas and refs; packs, tree comparison and line counts are done here,
// because those are where the time goes and go-git's take twenty times as long
// in a sandbox.
package main

import (
	"context"
	"errors"
	"path/filepath"
	"runtime/debug"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// softMemory makes the collector work harder before a guest's 256 MiB are full.
// Under wasm there is one thread and nothing preempts it, so the collector gets
// its turn when the connector yields: every long loop calls runtime.Gosched.
// Without, collections took forty times as long, and 200,000 commits ran out of
// memory.
const softMemory = 192 << 20

var connector = guest.Connector{Collect: collect}

func main() {
	debug.SetGCPercent(200)
	debug.SetMemoryLimit(softMemory)
	guest.Main(connector)
}

func collect(ctx context.Context, run *guest.Run) (err error) {
	set, err := readSettings(run)
	if err != nil {
		return err
	}
	mount, ok := run.Mount("repo")
	if !ok {
		return guest.Fail("mount_missing", false, guest.ManualActionRequired,
			"no directory is mounted as repo: run with --mount repo=DIR")
	}
	repo, err := openRepository(mount, filepath.Join(mount, filepath.FromSlash(set.Path)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	refs, err := repo.refs()
	if err != nil {
		return err
	}
	if s := openStream(run, "refs"); s != nil {
		if err := collectRefs(s, refs); err != nil {
			return err
		}
	}
	if s := openStream(run, "tags"); s != nil {
		if err := collectTags(s, repo, refs); err != nil {
			return err
		}
	}
	return collectHistory(ctx, run, repo, refs, set)
}
