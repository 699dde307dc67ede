package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

func TestRefsAndTags(t *testing.T) {
	r := newRepo(t)
	r.write("f", "1\n")
	hash := r.commit("root")
	tree := strings.TrimSpace(r.git("rev-parse", "HEAD^{tree}"))
	r.git("branch", "topic/one")
	r.git("update-ref", "refs/remotes/origin/main", hash)
	r.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	r.git("tag", "light")
	r.git("tag", "-a", "-m", "First\n\nwith notes", "v1")
	r.git("tag", "of-a-tree", tree)
	tag := strings.TrimSpace(r.git("rev-parse", "v1"))
	for _, stored := range []string{"loose", "packed"} {
		t.Run(stored, func(t *testing.T) {
			if stored == "packed" {
				r.git("pack-refs", "--all")
			}
			res := r.collect(guesttest.Options{})
			branch := func(name, short string, head bool) map[string]any {
				return map[string]any{"name": name, "short_name": short, "kind": "branch", "remote": nil, "target": hash,
					"symbolic_target": nil, "is_head": head}
			}
			remote := func(name string, symbolic any) map[string]any {
				return map[string]any{"name": "refs/remotes/origin/" + name, "short_name": "origin/" + name,
					"kind":   "remote_branch",
					"remote": "origin", "target": hash, "symbolic_target": symbolic, "is_head": false}
			}
			wantRefs := []map[string]any{branch("refs/heads/main", "main", true),
				branch("refs/heads/topic/one", "topic/one", false),
				remote("HEAD", "refs/remotes/origin/main"), remote("main", nil)}
			if diff := cmp.Diff(wantRefs, all(t, res.Records["refs"])); diff != "" {
				t.Errorf("refs (-want +got):\n%s", diff)
			}
			wantTags := []map[string]any{
				{"name": "refs/tags/light", "short_name": "light", "annotated": false, "object": hash, "target": hash,
					"target_type": "commit",
					"tagger_name": nil, "tagger_email": nil, "created_at": "2023-11-14T22:14:20Z", "message": nil},
				{"name": "refs/tags/of-a-tree", "short_name": "of-a-tree", "annotated": false, "object": tree, "target": tree,
					"target_type": "tree",
					"tagger_name": nil, "tagger_email": nil, "created_at": nil, "message": nil},
				{"name": "refs/tags/v1", "short_name": "v1", "annotated": true, "object": tag, "target": hash,
					"target_type": "commit",
					"tagger_name": "Con", "tagger_email": "con@example.org", "created_at": "2023-11-14T22:14:20Z",
					"message": "First\n\nwith notes\n"},
			}
			if diff := cmp.Diff(wantTags, all(t, res.Records["tags"])); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
		})
	}
}

func all(t *testing.T, records []guesttest.Record) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, r := range records {
		out = append(out, fields(t, r))
	}
	return out
}

// What is gone becomes a tombstone, once.
func TestTombstones(t *testing.T) {
	r := newRepo(t)
	r.commit("root")
	r.git("branch", "gone")
	r.git("tag", "gone")
	first := r.collect(guesttest.Options{})
	r.git("branch", "-D", "gone")
	r.git("tag", "-d", "gone")
	second := r.collect(guesttest.Options{State: stateAfter(first)})
	if got, want := keys(second.Records["refs"]),
		[]string{"refs/heads/main", "deleted refs/heads/gone"}; !slices.Equal(got, want) {
		t.Errorf("refs %v, want %v", got, want)
	}
	if got, want := keys(second.Records["tags"]), []string{"deleted refs/tags/gone"}; !slices.Equal(got, want) {
		t.Errorf("tags %v, want %v", got, want)
	}
	third := r.collect(guesttest.Options{State: stateAfter(second)})
	if got, want := keys(third.Records["refs"]), []string{"refs/heads/main"}; !slices.Equal(got, want) {
		t.Errorf("refs %v, want %v", got, want)
	}
	outside := r.collect(guesttest.Options{State: stateAfter(first),
		Scope: `{"streams":[{"name":"refs","resources":["refs/heads/main"]}]}`})
	if got, want := keys(outside.Records["refs"]), []string{"refs/heads/main"}; !slices.Equal(got, want) {
		t.Errorf("refs %v, want %v", got, want)
	}
}

// With a time range, a tag without a time stays out.
func TestTagTimes(t *testing.T) {
	r := newRepo(t)
	r.commit("root")
	r.git("tag", "light")
	r.git("tag", "tree", "HEAD^{tree}")
	res := r.collect(guesttest.Options{Scope: `{"streams":[{"name":"tags","time_range":{"since":"2023-01-01"}}]}`})
	if got, want := keys(res.Records["tags"]), []string{"refs/tags/light"}; !slices.Equal(got, want) {
		t.Errorf("tags %v, want %v", got, want)
	}
}

// The same history comes out of every kind of repository.
func TestLayouts(t *testing.T) {
	r := branched(t)
	want := keys(r.collect(guesttest.Options{}).Records["commits"])
	bare := filepath.Join(t.TempDir(), "bare.git")
	r.git("clone", "-q", "--mirror", ".", bare)
	borrowed := t.TempDir()
	r.git("clone", "-q", "--shared", "--no-checkout", ".", borrowed)
	linked := filepath.Join(r.dir, "linked")
	r.git("worktree", "add", "-q", "--detach", linked)
	for _, c := range []struct {
		name, mount, path string
	}{
		{"bare", bare, ""},
		{"borrowed objects", borrowed, ""},
		{"linked work tree", linked, ""},
		{"folder of the mount", filepath.Dir(bare), "bare.git"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := map[string]any{"path": c.path}
			res := r.collect(guesttest.Options{Files: map[string]string{"repo": c.mount}, Config: config})
			if diff := cmp.Diff(want, keys(res.Records["commits"])); diff != "" {
				t.Errorf("commits (-want +got):\n%s", diff)
			}
		})
	}
}

// The .git file of a linked work tree names a path of the owner's machine; a
// guest sees another one.
func TestGitFileInsideMount(t *testing.T) {
	r := newRepo(t)
	r.commit("root")
	r.write("linked/.git", "gitdir: /home/somebody/elsewhere/.git/worktrees/linked\n")
	dir := filepath.Join(r.dir, ".git/worktrees/linked")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.write(".git/worktrees/linked/HEAD", "ref: refs/heads/main\n")
	r.write(".git/worktrees/linked/commondir", "../..\n")
	res := r.collect(guesttest.Options{Config: map[string]any{"path": "linked"}, Scope: onlyCommits})
	if len(res.Records["commits"]) != 1 {
		t.Errorf("%d commits", len(res.Records["commits"]))
	}
}

func TestEmptyRepository(t *testing.T) {
	r := newRepo(t)
	res := r.collect(guesttest.Options{})
	for stream, records := range res.Records {
		t.Errorf("stream %s has %d records", stream, len(records))
	}
	hash := r.commit("the first")
	next := r.collect(guesttest.Options{State: stateAfter(res)})
	if got := keys(next.Records["commits"]); !slices.Equal(got, []string{hash}) {
		t.Errorf("commits %v", got)
	}
}

func TestRefusals(t *testing.T) {
	good := newRepo(t)
	good.commit("root")
	sha256 := &repo{t: t, dir: t.TempDir(), now: good.now}
	sha256.git("init", "-q", "--object-format=sha256")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, ".git"), []byte("gitdir: /nowhere/at/all\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		dir    string
		config map[string]any
		want   string
	}{
		{"no repository", t.TempDir(), nil, "repository_not_found"},
		{"other hashes", sha256.dir, nil, "repository_format_unsupported"},
		{"outside", outside, nil, "repository_outside_mount"},
		{"path leaves the mount", good.dir, map[string]any{"path": "../x"}, "invalid_settings"},
		{"negative limit", good.dir, map[string]any{"max_commits": -1}, "invalid_settings"},
		{"no mount", "", nil, "mount_missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := guesttest.Options{Manifest: manifest}
			if c.config != nil {
				o.Config = c.config
			}
			if c.dir != "" {
				o.Files = map[string]string{"repo": c.dir}
			}
			res := guesttest.Run(t, connector, o)
			if res.Status != abi.Failed || res.Done == nil || res.Done.Error == nil || res.Done.Error.Code != c.want {
				t.Errorf("status %s, done %+v", res.Status, res.Done)
			}
		})
	}
}

// Damaged files give errors, whatever they contain.
func TestDamage(t *testing.T) {
	for _, name := range []string{".idx", ".pack"} {
		r := branched(t)
		r.git("gc", "-q")
		found, err := filepath.Glob(filepath.Join(r.dir, ".git/objects/pack/*"+name))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		whole, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(found[0], 0o644); err != nil {
			t.Fatal(err)
		}
		failed := 0
		for at := 0; at < len(whole); at += 1 + len(whole)/29 {
			for _, damaged := range [][]byte{whole[:at], flipped(whole, at)} {
				if err := os.WriteFile(found[0], damaged, 0o644); err != nil {
					t.Fatal(err)
				}
				res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest, Files: map[string]string{"repo": r.dir}})
				if res.Status == abi.Failed {
					failed++
					if res.Done == nil || res.Done.Error.Code == "panic" {
						t.Fatalf("%s damaged at %d: %+v", name, at, res.Done)
					}
				}
			}
		}
		if failed == 0 {
			t.Errorf("no damage to %s was noticed", name)
		}
	}
}

func flipped(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x55
	return b
}
