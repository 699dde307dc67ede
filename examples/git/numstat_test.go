package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

// numstat returns what git says about the files of every commit, one line per
// file: commit, additions, deletions, old path, path.
func (r *repo) numstat(args ...string) []string {
	r.t.Helper()
	out := r.git(append([]string{"-c", "core.quotePath=off", "log", "--all", "-z", "--format=@%H", "--numstat", "-M",
		"--diff-merges=first-parent", "--diff-algorithm=minimal", "--root"}, args...)...)
	var lines []string
	commit := ""
	tokens := strings.Split(out, "\x00")
	for i := 0; i < len(tokens); i++ {
		token := strings.TrimPrefix(tokens[i], "\n")
		if rest, ok := strings.CutPrefix(token, "@"); ok {
			commit = rest
			continue
		}
		parts := strings.SplitN(token, "\t", 3)
		if len(parts) != 3 {
			continue
		}
		old, path := "", parts[2]
		if path == "" { // a rename: both paths follow
			old, path = tokens[i+1], tokens[i+2]
			i += 2
		}
		lines = append(lines, fmt.Sprint(commit, " ", parts[0], " ", parts[1], " ", repaired(old), " ", repaired(path)))
	}
	slices.Sort(lines)
	return lines
}

// collected returns the same from the records of a run.
func collected(t *testing.T, res *guesttest.Result) []string {
	t.Helper()
	var lines []string
	for _, rec := range res.Records["files"] {
		m := fields(t, rec)
		text := func(v any) string {
			if v == nil {
				return "-"
			}
			return fmt.Sprint(v)
		}
		old := ""
		if m["old_path"] != nil {
			old = m["old_path"].(string)
		}
		lines = append(lines, fmt.Sprint(m["commit"], " ", text(m["additions"]), " ", text(m["deletions"]), " ",
			old, " ", m["path"]))
	}
	slices.Sort(lines)
	return lines
}

// checkFiles compares the files of a full run with git's own numbers.
func (r *repo) checkFiles(res *guesttest.Result) {
	r.t.Helper()
	if diff := cmp.Diff(r.numstat(), collected(r.t, res)); diff != "" {
		r.t.Errorf("files (-git +collected):\n%s", diff)
	}
}
