package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

const onlyCommits = `{"streams":[{"name":"commits"}]}`

// log returns what git says about the commits in the order of the records.
func (r *repo) log() map[string]string {
	r.t.Helper()
	out := r.git("log", "--all", "-z", "--format=%H%x01%P%x01%T%x01%an%x01%ae%x01%aI%x01%cn%x01%ce%x01%cI%x01%s%x01%b")
	commits := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		hash, rest, _ := strings.Cut(line, "\x01")
		commits[hash] = repaired(strings.Trim(rest, "\n"))
	}
	return commits
}

func commitLines(t *testing.T, res *guesttest.Result) map[string]string {
	t.Helper()
	commits := map[string]string{}
	for _, rec := range res.Records["commits"] {
		m := fields(t, rec)
		var parents []string
		for _, p := range m["parents"].([]any) {
			parents = append(parents, p.(string))
		}
		line := strings.Join(parents, " ")
		for _, f := range []string{"tree", "author_name", "author_email", "authored_at", "committer_name", "committer_email",
			"committed_at", "subject", "body"} {
			line += fmt.Sprint("\x01", m[f])
		}
		commits[rec.Key] = strings.ReplaceAll(line, "Z\x01", "+00:00\x01")
	}
	return commits
}

func TestCommitsAgreeWithGit(t *testing.T) {
	r := branched(t)
	r.commit("subject\nover two lines\n\nbody\n\nmore body\n\n\n")
	r.commit("bytes that are no UTF-8: \xff\xfe")
	r.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-m", "d\xe9j\xe0 vu")
	r.gitIn(nil, "-c", "user.name=x", "commit", "-q", "--allow-empty", "--date=2001-02-03T04:05:06+05:30",
		"-m", "another zone")
	r.commit("")
	res := r.collect(guesttest.Options{Scope: onlyCommits})
	if diff := cmp.Diff(strings.ReplaceAll(fmt.Sprint(r.log()), "Z\x01", "+00:00\x01"),
		fmt.Sprint(commitLines(t, res))); diff != "" {
		t.Errorf("commits (-git +collected):\n%s", diff)
	}
}

// Parents come before children, so that the cursor of any moment is sound.
func TestParentsFirst(t *testing.T) {
	r := branched(t)
	r.now -= 100_000 // a clock that went wrong
	r.commit("from the past")
	r.now += 200_000
	r.commit("from the future")
	seen := map[string]bool{}
	for _, rec := range r.collect(guesttest.Options{Scope: onlyCommits}).Records["commits"] {
		for _, p := range fields(t, rec)["parents"].([]any) {
			if !seen[p.(string)] {
				t.Errorf("commit %s comes before its parent %s", rec.Key, p)
			}
		}
		seen[rec.Key] = true
	}
}

func TestIncremental(t *testing.T) {
	r := branched(t)
	first := r.collect(guesttest.Options{})
	again := r.collect(guesttest.Options{State: stateAfter(first)})
	if n := len(again.Records["commits"]) + len(again.Records["files"]); n != 0 {
		t.Errorf("a second run collects %d records again", n)
	}
	a := r.commit("a")
	r.git("checkout", "-q", "-b", "topic", "HEAD~1")
	b := r.commit("b")
	r.git("gc", "-q")
	next := r.collect(guesttest.Options{State: stateAfter(again)})
	if got, want := keys(next.Records["commits"]), []string{a, b}; !slices.Equal(got, want) {
		t.Errorf("commits %v, want %v", got, want)
	}
}

// A branch that was rewritten, its old commits gone for good, costs nothing but
// a longer walk.
func TestForcePushAndPrune(t *testing.T) {
	r := newRepo(t)
	r.write("f", "1\n")
	root := r.commit("root")
	r.write("f", "2\n")
	r.commit("to be replaced")
	first := r.collect(guesttest.Options{})
	r.git("reset", "-q", "--hard", root)
	r.write("f", "3\n")
	replaced := r.commit("replacement")
	for _, c := range []struct {
		name string
		do   func()
		want []string
	}{
		{"old tip still there", func() {}, []string{replaced}},
		{"old tip gone", func() {
			r.git("reflog", "expire", "--expire=now", "--all")
			r.git("gc", "-q", "--prune=now")
		}, []string{root, replaced}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.do()
			res := r.collect(guesttest.Options{State: stateAfter(first)})
			if got := keys(res.Records["commits"]); !slices.Equal(got, c.want) {
				t.Errorf("commits %v, want %v", got, c.want)
			}
			if len(res.Skips) != 0 {
				t.Errorf("skips %+v", res.Skips)
			}
		})
	}
}

// With a page limit each run continues where the last one stopped, until everything is
// there exactly once.
func TestPages(t *testing.T) {
	r := branched(t)
	want := keys(r.collect(guesttest.Options{}).Records["commits"])
	var got []string
	state := map[string]any{}
	for run := 1; ; run++ {
		res := r.collect(guesttest.Options{State: state, Config: map[string]any{"max_commits": 2}})
		state = stateAfter(res)
		got = append(got, keys(res.Records["commits"])...)
		if len(res.Skips) == 0 {
			break
		}
		if c := res.Skips[0].Continuation; res.Skips[0].Reason != "page_limit" || c == nil || !c.Remaining {
			t.Fatalf("skip %+v", res.Skips[0])
		}
		if run > len(want) {
			t.Fatal("there is always more")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commits (-at once +paged):\n%s", diff)
	}
}

// A cursor is good for what it was made for: a wider scope starts anew.
func TestWiderScope(t *testing.T) {
	r := branched(t)
	narrow := r.collect(guesttest.Options{Scope: onlyCommits})
	wide := r.collect(guesttest.Options{State: stateAfter(narrow)})
	r.checkFiles(wide)
	damaged := r.collect(guesttest.Options{State: map[string]any{"commits": map[string]any{"tips": 7}}})
	r.checkFiles(damaged)
}

func TestScope(t *testing.T) {
	r := varied(t)
	all := keys(r.collect(guesttest.Options{}).Records["commits"])
	res := r.collect(guesttest.Options{Scope: `{"streams":[
		{"name":"commits","fields":["subject"],"time_range":{"since":"2023-11-14T22:15:20Z","until":"2023-11-14T22:17:20Z"}},
		{"name":"files","fields":["status"],"resources":["dir/b.txt"]}]}`})
	if got := keys(res.Records["commits"]); !slices.Equal(got, all[1:3]) {
		t.Errorf("commits %v, want %v", got, all[1:3])
	}
	want := map[string]any{"hash": all[1], "subject": "edits", "committed_at": "2023-11-14T22:15:20Z"}
	if diff := cmp.Diff(want, fields(t, res.Records["commits"][0])); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if got := keys(res.Records["files"]); !slices.Equal(got,
		[]string{all[0] + ":dir/b.txt", all[4] + ":dir/b.txt", all[5] + ":dir/b.txt"}) {
		t.Errorf("files %v", got)
	}
}

func TestFirstParent(t *testing.T) {
	r := branched(t)
	r.git("branch", "-q", "-D", "side")
	want := strings.Fields(r.git("rev-list", "--first-parent", "--reverse", "main"))
	res := r.collect(guesttest.Options{Config: map[string]any{"first_parent": true, "include_files": false}})
	if diff := cmp.Diff(want, keys(res.Records["commits"])); diff != "" {
		t.Errorf("commits (-git +collected):\n%s", diff)
	}
	if n := len(res.Records["files"]); n != 0 {
		t.Errorf("%d files, but they are switched off", n)
	}
}

func TestShallow(t *testing.T) {
	r := branched(t)
	clone := &repo{t: t, dir: t.TempDir(), now: r.now}
	clone.git("clone", "-q", "--depth", "2", "file://"+r.dir, ".")
	res := clone.collect(guesttest.Options{})
	if len(res.Skips) != 1 || res.Skips[0].Reason != "shallow_boundary" {
		t.Fatalf("skips %+v", res.Skips)
	}
	boundary := res.Skips[0].ResourceIDs
	for _, line := range collected(t, res) {
		if slices.Contains(boundary, line[:40]) {
			t.Errorf("a commit without its parent has files: %s", line)
		}
	}
	clone.git("fetch", "-q", "--unshallow")
	full := clone.collect(guesttest.Options{State: stateAfter(res)})
	clone.checkFiles(full)
}

// A missing commit does not end the run, and the cursor stays before it.
func TestMissingCommit(t *testing.T) {
	r := newRepo(t)
	lost := r.commit("lost")
	kept := r.commit("kept")
	if err := os.Remove(filepath.Join(r.dir, ".git/objects", lost[:2], lost[2:])); err != nil {
		t.Fatal(err)
	}
	res := r.collect(guesttest.Options{Scope: onlyCommits})
	if got := keys(res.Records["commits"]); !slices.Equal(got, []string{kept}) {
		t.Errorf("commits %v", got)
	}
	if len(res.Skips) != 1 || res.Skips[0].Reason != "objects_missing" || len(res.States) != 0 {
		t.Errorf("skips %+v, states %v", res.Skips, res.States)
	}
}

func TestCancel(t *testing.T) {
	r := branched(t)
	res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest, Files: map[string]string{"repo": r.dir},
		Cancel: func(call abi.Call) bool { return call == abi.CallCheckpoint }})
	if res.Status != abi.Cancelled {
		t.Errorf("status %s", res.Status)
	}
}

// A long history has cursors on the way, each sound by itself.
func TestCheckpointsOnTheWay(t *testing.T) {
	r := newRepo(t)
	var in strings.Builder
	for i := range 2*checkpointEvery + 10 {
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\ncommitter C <c@example.org> %d +0000\ndata 1\nx\n",
			i+1, 1_600_000_000+i)
		if i > 0 {
			fmt.Fprintf(&in, "from :%d\n", i)
		}
	}
	r.gitIn([]byte(in.String()), "fast-import", "--quiet")
	var staged, emitted int
	res := r.collect(guesttest.Options{Scope: onlyCommits})
	emitted = len(res.Records["commits"])
	staged = strings.Count(res.Transcript, "STATE commits")
	if emitted != 2*checkpointEvery+10 || staged != 3 {
		t.Errorf("%d commits, %d cursors\n%.300s", emitted, staged, res.Transcript)
	}
	if len(res.Progress) != 5 {
		t.Errorf("%d progress messages", len(res.Progress))
	}
}
