package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

// text makes n lines that differ from those of another seed.
func text(seed, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d of %d: %x\n", i, seed, (i+1)*(seed+7)*2654435761)
	}
	return b.String()
}

// varied is a repository with one of everything that numstat knows.
func varied(t *testing.T) *repo {
	r := newRepo(t)
	r.write("a.txt", text(1, 60))
	r.write("dir/b.txt", text(2, 40))
	r.write("no-newline", "one\ntwo")
	r.write("empty", "")
	r.write("blob.bin", "\x00\x01\x02"+text(3, 5))
	r.commit("root")

	r.write("a.txt", text(1, 30)+"inserted\n"+strings.TrimPrefix(text(1, 58), text(1, 31)))
	r.write("no-newline", "one\ntwo\n")
	r.write("blob.bin", "\x00\x01\x03"+text(3, 9))
	r.commit("edits")

	r.git("mv", "a.txt", "dir/renamed.txt")
	r.git("mv", "blob.bin", "moved.bin")
	r.write("dir/renamed.txt", text(1, 30)+"inserted\n"+text(9, 3)+strings.TrimPrefix(text(1, 58), text(1, 31)))
	r.commit("renames")

	if err := os.Remove(filepath.Join(r.dir, "empty")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dir/b.txt", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	r.git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1a", 20)+",sub")
	if err := os.Mkdir(filepath.Join(r.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.commit("link and submodule")
	r.git("update-index", "--cacheinfo", "160000,"+strings.Repeat("2b", 20)+",sub")
	r.git("update-index", "--chmod=+x", "dir/b.txt")
	r.git("commit", "-q", "-m", "submodule moves, mode changes")

	if err := os.Remove(filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	r.write("link", "no longer a link\n")
	r.git("rm", "-q", "--cached", "no-newline")
	if err := os.Remove(filepath.Join(r.dir, "no-newline")); err != nil {
		t.Fatal(err)
	}
	r.write("no-newline/inner", "a file became a directory\n")
	r.write("na\xefve.txt", "a name that is no UTF-8\n")
	r.commit("type change")
	return r
}

func branched(t *testing.T) *repo {
	r := varied(t)
	r.git("checkout", "-q", "-b", "side", "HEAD~2")
	r.write("dir/b.txt", text(2, 40)+"on the side\n")
	r.write("side.txt", text(5, 10))
	r.commit("side")
	r.git("checkout", "-q", "main")
	r.write("main.txt", text(6, 10))
	r.commit("main goes on")
	r.now += 60
	r.git("merge", "-q", "--no-ff", "-m", "merge side", "side")
	return r
}

// The numbers of every stream of file changes are git's own, whichever way the
// objects are stored.
func TestFilesAgreeWithGit(t *testing.T) {
	for _, c := range []struct {
		name  string
		store func(r *repo)
	}{
		{"loose", func(*repo) {}},
		{"packed", func(r *repo) { r.git("gc", "-q", "--prune=now") }},
		{"packed without offset deltas", func(r *repo) {
			r.git("-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-a", "-d")
		}},
		{"two packs and loose objects", func(r *repo) {
			r.git("gc", "-q")
			r.write("later", "later\n")
			r.commit("later")
			r.git("repack", "-q")
			r.write("dir/b.txt", text(2, 41))
			r.commit("loose again")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := branched(t)
			c.store(r)
			r.checkFiles(r.collect(guesttest.Options{}))
		})
	}
}

// Renames among many files are found as git finds them.
func TestRenamesAgreeWithGit(t *testing.T) {
	r := newRepo(t)
	for i := range 30 {
		r.write(fmt.Sprintf("old/f%d.txt", i), text(i, 30)+text(100+i/3, 10))
	}
	r.write("same/one", text(200, 20))
	r.write("same/two", text(200, 20))
	r.commit("root")
	for i := range 30 {
		to := fmt.Sprintf("new/f%d.txt", i)
		if i%3 == 0 {
			to = fmt.Sprintf("new/g%d.txt", i)
		}
		if err := os.Remove(filepath.Join(r.dir, fmt.Sprintf("old/f%d.txt", i))); err != nil {
			t.Fatal(err)
		}
		r.write(to, text(i, 30-i%20)+text(100+i/3, 10)+text(300+i, i%17))
	}
	r.git("mv", "same/two", "same/2")
	r.git("mv", "same/one", "elsewhere-one")
	r.commit("move all")
	r.checkFiles(r.collect(guesttest.Options{}))
}

func TestFileRecord(t *testing.T) {
	r := varied(t)
	res := r.collect(guesttest.Options{Scope: `{"streams":[{"name":"files"}]}`})
	got := map[string]map[string]any{}
	for _, rec := range res.Records["files"] {
		m := fields(t, rec)
		delete(m, "commit")
		if _, path, ok := strings.Cut(m["id"].(string), ":"); !ok ||
			path != m["path"] && !strings.HasPrefix(path, "sha256-") {
			t.Errorf("id %q of path %q", m["id"], m["path"])
		}
		delete(m, "id")
		got[m["path"].(string)+" "+m["status"].(string)] = m
	}
	for key, want := range map[string]map[string]any{
		"dir/renamed.txt renamed": {"path": "dir/renamed.txt", "old_path": "a.txt", "status": "renamed", "mode": "100644",
			"additions": 3.0, "deletions": 0.0, "binary": false, "committed_at": "2023-11-14T22:16:20Z"},
		"moved.bin renamed": {"path": "moved.bin", "old_path": "blob.bin", "status": "renamed", "mode": "100644",
			"additions": nil, "deletions": nil, "binary": true, "committed_at": "2023-11-14T22:16:20Z"},
		"empty deleted": {"path": "empty", "old_path": nil, "status": "deleted", "mode": nil,
			"additions": 0.0, "deletions": 0.0, "binary": false, "committed_at": "2023-11-14T22:17:20Z"},
		"link type_changed": {"path": "link", "old_path": nil, "status": "type_changed", "mode": "100644",
			"additions": 1.0, "deletions": 1.0, "binary": false, "committed_at": "2023-11-14T22:18:20Z"},
		"na\uFFFDve.txt added": {"path": "na\uFFFDve.txt", "old_path": nil, "status": "added", "mode": "100644",
			"additions": 1.0, "deletions": 0.0, "binary": false, "committed_at": "2023-11-14T22:18:20Z"},
	} {
		if diff := cmp.Diff(want, got[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if len(res.States) != 0 {
		t.Errorf("the files have a cursor of their own: %v", res.States)
	}
}

// A commit with more changed files than wanted has none, and says so.
func TestTooManyFiles(t *testing.T) {
	r := newRepo(t)
	for i := range 4 {
		r.write(fmt.Sprint("f", i), "x\n")
	}
	large := r.commit("four files")
	r.write("f0", "y\n")
	small := r.commit("one file")
	res := r.collect(guesttest.Options{Config: map[string]any{"max_files_per_commit": 3}})
	if got, want := keys(res.Records["files"]), []string{small + ":f0"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if len(res.Skips) != 1 || res.Skips[0].Reason != "diff_too_large" ||
		!slices.Equal(res.Skips[0].ResourceIDs, []string{large}) {
		t.Errorf("skips %+v", res.Skips)
	}
}

// Where objects are missing the rest is collected and the gap is named.
func TestMissingBlob(t *testing.T) {
	r := newRepo(t)
	r.write("kept", "kept\n")
	r.write("lost", "lost\n")
	commit := r.commit("two files")
	blob := strings.TrimSpace(r.git("rev-parse", "HEAD:lost"))
	if err := os.Remove(filepath.Join(r.dir, ".git/objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	res := r.collect(guesttest.Options{})
	if got := collected(t, res); !slices.Equal(got, []string{commit + " - -  lost", commit + " 1 0  kept"}) {
		t.Errorf("files %q", got)
	}
	if len(res.Skips) != 1 || res.Skips[0].Reason != "objects_missing" ||
		!slices.Equal(res.Skips[0].ResourceIDs, []string{commit}) {
		t.Errorf("skips %+v", res.Skips)
	}
}
