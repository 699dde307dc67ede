//go:build !wasip1

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

func data(t *testing.T, r guesttest.Record) object {
	t.Helper()
	var o object
	if err := r.Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

// want compares some members of a record.
func want(t *testing.T, r guesttest.Record, members object) {
	t.Helper()
	got := data(t, r)
	for name := range got {
		if _, ok := members[name]; !ok {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(members, got); diff != "" {
		t.Errorf("record %s (-want +got):\n%s", r.Key, diff)
	}
}

var everything = map[string][]string{
	"repositories":    {"700100002", "700100001"},
	"stars":           {"23096959", "10270250"},
	"issues":          {"2800000001", "2800000003"},
	"pull_requests":   {"1900000004", "1900000002"},
	"comments":        {"3000000001", "3000000002"},
	"review_comments": {"2100000001", "2100000002"},
	"releases":        {"150000002", "150000001"},
}

// The recorded answers become these records.
func TestCollect(t *testing.T) {
	f := recorded(t)
	got := f.run(t, f.options(), nil)
	if diff := cmp.Diff(everything, changes(got)); diff != "" {
		t.Fatal(diff)
	}
	if len(got.Skips) > 0 {
		t.Errorf("%+v", got.Skips)
	}
	r := got.Records
	want(t, r["repositories"][1],
		object{"full_name": "ada/tide", "owner": "ada", "license": "MIT", "topics": []any{"tides", "sailing"}, "stars": 41.0,
			"private": false, "created_at": "2024-03-01T09:00:00Z"})
	want(t, r["repositories"][0],
		object{"full_name": "ada/notes", "license": nil, "language": nil, "private": true, "topics": []any{}})
	want(t, r["stars"][0], object{"full_name": "golang/go", "starred_at": "2026-01-05T10:00:00Z"})
	want(t, r["issues"][0], object{"repository": "ada/tide", "number": 1.0, "state": "closed",
		"state_reason": "completed", "author": "bob",
		"labels": []any{"bug"}, "assignees": []any{"ada"}, "body": "Since the *clocks* changed.\r\n\r\nSeen in `Brest`.",
		"closed_at": "2025-07-03T08:00:00Z"})
	want(t, r["issues"][1], object{"title": "Neap tides — wrong colour 🌊", "author": nil, "milestone": "v1.1",
		"body": nil, "closed_at": nil})
	want(t, r["pull_requests"][1],
		object{"number": 2.0, "head": "bob:local-time", "base": "main", "reviewers": []any{"ada"},
			"merged_at": "2025-07-03T07:59:00Z", "merged_as": "e5bd3914e2e596debea16f433f57875b5b90bcd6"})
	want(t, r["pull_requests"][0], object{"draft": true, "author": "dependabot[bot]", "merged_at": nil, "merged_as": nil})
	want(t, r["comments"][0], object{"issue": 1.0, "author": "ada", "updated_at": "2025-07-01T11:05:00Z"})
	want(t, r["review_comments"][1],
		object{"pull_request": 2.0, "in_reply_to": "2100000001", "line": nil, "path": "table.go"})
	want(t, r["releases"][0], object{"draft": true, "published_at": nil, "name": "", "assets": []any{}})
	want(t, r["releases"][1],
		object{"tag": "v1.0.0", "assets": []any{object{"name": "tide_linux_amd64.tar.gz",
			"size": 2345678.0, "downloads": 17.0,
			"url": "https://github.com/ada/tide/releases/download/v1.0.0/tide_linux_amd64.tar.gz"}}})
	if diff := cmp.Diff(map[string]bool{"Bearer handle": true}, f.tokens); diff != "" {
		t.Error(diff)
	}
}

// A second run asks each list once and is told that nothing changed; a third
// has what did, and no more.
func TestNothingNew(t *testing.T) {
	f := recorded(t)
	first := f.run(t, f.options(), nil)
	second := f.run(t, f.options(), first)
	if len(second.Records) > 0 {
		t.Fatal(second.Transcript)
	}
	for _, a := range f.asked {
		if !strings.HasSuffix(a, " 304") {
			t.Errorf("asked %s", a)
		}
	}
	if len(f.asked) != 12 {
		t.Errorf("asked %v", f.asked)
	}

	const issues, comments, releases = "/repos/ada/tide/issues", "/repos/ada/tide/issues/comments",
		"/repos/ada/tide/releases"
	f.change(t, issues, 2800000001, object{"updated_at": "2026-02-11T00:00:00Z", "title": "Late"})
	f.lists[comments] = append(f.lists[comments],
		object{"id": json.Number("3000000003"), "created_at": "2026-02-11T00:00:00Z", "updated_at": "2026-02-11T00:00:00Z"})
	f.lists["/repos/ada/tide/pulls"][1]["updated_at"] = "2026-02-12T00:00:00Z"
	f.lists[releases] = f.lists[releases][1:]
	f.lists["/user/starred"] = f.lists["/user/starred"][:1]
	third := f.run(t, f.options(), second)
	diff := cmp.Diff(map[string][]string{
		// what changed last is asked for again: there may be more of that second
		"issues": {"2800000003", "2800000001"}, "comments": {"3000000002", "3000000003"}, "pull_requests": {"1900000004"},
		"releases": {"150000001", "-150000002"}, "stars": {"23096959", "-10270250"},
	}, changes(third))
	if diff != "" {
		t.Error(diff)
	}
	if fourth := f.run(t, f.options(), third); len(fourth.Records) > 0 {
		t.Error(fourth.Transcript)
	}
}

// A repository that is gone from the list is deleted with its releases; a renamed one
// keeps its key, and its contents are collected under the new name.
func TestGoneAndRenamed(t *testing.T) {
	f := recorded(t)
	first := f.run(t, f.options(), nil)
	f.lists["/user/repos"] = f.lists["/user/repos"][:1]
	second := f.run(t, f.options(), first)
	if diff := cmp.Diff(map[string][]string{"repositories": {"700100002", "-700100001"},
		"releases": {"-150000001", "-150000002"}}, changes(second)); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(second.States["issues"]), "700100001") {
		t.Errorf("cursor %s", second.States["issues"])
	}

	f = recorded(t)
	f.change(t, "/user/repos", 700100001, object{"full_name": "ada/tides"})
	for path, list := range f.lists {
		if rest, ok := strings.CutPrefix(path, "/repos/ada/tide/"); ok {
			f.lists["/repos/ada/tides/"+rest] = list
			delete(f.lists, path)
		}
	}
	renamed := f.run(t, f.options(), first)
	all := changes(renamed)
	delete(all, "repositories")
	expected := map[string][]string{}
	for _, stream := range []string{"issues", "pull_requests", "comments", "review_comments", "releases"} {
		expected[stream] = everything[stream]
	}
	if diff := cmp.Diff(expected, all); diff != "" {
		t.Error(diff)
	}
	want(t, renamed.Records["issues"][0], object{"repository": "ada/tides"})
	want(t, renamed.Records["repositories"][1], object{"id": "700100001", "full_name": "ada/tides"})
}

// Repositories that the settings list are requested one by one. A renamed one is found
// by a redirect; a missing one does not affect the others, and gets no tombstone.
func TestNamed(t *testing.T) {
	f := recorded(t)
	o := f.options()
	o.Config = object{"repositories": []string{"ada/old", "ada/tide", "ADA/tide", "ada/notes"}}
	f.instead["/repos/ada/old"] = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "https://api.github.com/repositories/700100001", http.StatusMovedPermanently)
		return true
	}
	f.single["/repositories/700100001"] = f.single["/repos/ada/tide"]
	first := f.run(t, o, nil)
	if diff := cmp.Diff([]string{"700100001", "700100002"}, changes(first)["repositories"]); diff != "" {
		t.Error(diff)
	}
	second := f.run(t, o, first)
	if len(second.Records) > 0 {
		t.Error(second.Transcript)
	}
	delete(f.single, "/repos/ada/notes")
	third := f.run(t, o, second)
	if len(third.Records) > 0 || skips(third)["issues"] != "not_found ada/notes" ||
		skips(third)["repositories"] != "not_found ada/notes" {
		t.Error(third.Transcript)
	}
	o.Config = object{"repositories": []string{"ada/tide"}} // the other is no longer asked for, not deleted
	if diff := cmp.Diff(map[string][]string{"repositories": {"700100001"}}, changes(f.run(t, o, third))); diff != "" {
		t.Error(diff)
	}
}

// Only what the scope admits is asked for and emitted; a wider
// scope begins anew.
func TestScope(t *testing.T) {
	f := recorded(t)
	o := f.options()
	o.Scope = `{"streams":[{"name":"issues","fields":["title"],"resources":["ada/tide","ada/none"],"time_range":{"since":"2026-01-01T00:00:00Z"}}]}`
	first := f.run(t, o, nil)
	if diff := cmp.Diff(map[string][]string{"issues": {"2800000003"}}, changes(first)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(object{"id": "2800000003", "created_at": "2026-02-01T10:00:00Z", "repository": "ada/tide",
		"title": "Neap tides — wrong colour 🌊"}, data(t, first.Records["issues"][0])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/user/repos", "/repos/ada/tide/issues"}, f.asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"issues": "scope_not_supported ada/none"}, skips(first)); diff != "" {
		t.Error(diff)
	}
	o.Scope = `{"streams":[{"name":"issues"}]}`
	if second := f.run(t, o, first); len(second.Records["issues"]) != 2 {
		t.Error(second.Transcript)
	}

	// A tombstone names no resource: it would be outside of the scope.
	all := f.run(t, f.options(), nil)
	f.lists["/user/starred"] = nil
	o = f.options()
	o.Scope = `{"streams":[{"name":"stars","resources":["golang/go"]}]}`
	narrow := f.run(t, o, all)
	if len(narrow.Records) > 0 {
		t.Error(narrow.Transcript)
	}
	if wide := f.run(t, f.options(), narrow); cmp.Diff([]string{"-10270250", "-23096959"}, changes(wide)["stars"]) != "" {
		t.Error(wide.Transcript)
	}
}

func TestSettings(t *testing.T) {
	f := recorded(t)
	for _, config := range []object{
		{"repositories": []string{"ada"}}, {"repositories": []string{"ada/../../users"}},
		{"repositories": []string{"ada/.."}}, {"repositories": []string{"a?b/c"}}, {"user": "a/b"}, {"user": ".."},
		{"api": "ftp://h/"}, {"api": "https://u:p@h/"}, {"api": "https://h/?x"}, {"max_requests": -1},
		{"max_wait_seconds": 901},
	} {
		o := f.options()
		o.Config = config
		if got := guesttest.Run(t, connector, o); got.Done == nil || got.Done.Error == nil ||
			got.Done.Error.Code != "invalid_settings" {
			t.Errorf("%v: %s", config, got.Transcript)
		}
	}
	o := f.options()
	o.Secrets = nil
	if got := guesttest.Run(t, connector, o); got.Done.Error == nil ||
		!strings.Contains(got.Done.Error.Message, "without a token") {
		t.Error(got.Transcript)
	}
	if len(f.asked) > 0 {
		t.Errorf("asked %v", f.asked)
	}

	// An account's public data needs none.
	f.lists["/users/ada/repos"], f.lists["/users/ada/starred"] = f.lists["/user/repos"][1:], f.lists["/user/starred"]
	o.Config = object{"user": "ada"}
	if got := f.run(t, o, nil); len(got.Records["issues"]) != 2 || len(got.Records["stars"]) != 2 || !f.tokens[""] ||
		len(f.tokens) != 1 {
		t.Error(got.Transcript)
	}
}
