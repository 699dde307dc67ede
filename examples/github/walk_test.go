//go:build !wasip1

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ids are how often each record of a stream was emitted.
func ids(records []string) map[string]int {
	out := map[string]int{}
	for _, k := range records {
		out[k]++
	}
	return out
}

// Lists of several pages come whole and without repetition, whichever way they
// are walked.
func TestPages(t *testing.T) {
	f := recorded(t)
	for _, list := range []string{"issues", "pulls", "issues/comments", "pulls/comments", "releases"} {
		f.lists[tide+list] = many(250, 1)
	}
	for i := range 250 {
		f.lists["/user/starred"] = append(f.lists["/user/starred"],
			object{"starred_at": "2020-01-01T00:00:00Z", "repo": object{"id": i + 1, "full_name": fmt.Sprint("a/b", i)}})
	}
	first := f.run(t, f.options(), nil)
	for stream, n := range map[string]int{"issues": 250, "pull_requests": 250, "comments": 250, "review_comments": 250,
		"releases": 250, "stars": 252} {
		all := changes(first)[stream]
		if len(all) != n || len(ids(all)) != n {
			t.Errorf("%s: %d records of %d", stream, len(all), len(ids(all)))
		}
	}
	f.change(t, tide+"releases", 240, object{"name": "on the last page"})
	second := f.run(t, f.options(), first)
	if !strings.Contains(fmt.Sprint(second.Transcript), "on the last page") {
		t.Error("what changes on a later page is not had")
	}
	for _, stream := range []string{"issues", "pull_requests", "comments"} {
		if n := len(second.Records[stream]); n > 1 {
			t.Errorf("%s: %d records again", stream, n)
		}
	}
	f.lists[tide+"releases"] = f.lists[tide+"releases"][:120]
	third := f.run(t, f.options(), second)
	if deleted := strings.Count(fmt.Sprint(changes(third)["releases"]), "-"); deleted != 130 {
		t.Errorf("%d releases deleted", deleted)
	}
}

// An item that changes while its list is walked goes to the end, and moves one
// that was not yet seen to a page that was: it is had all the same.
func TestChangeWhileWalking(t *testing.T) {
	f := recorded(t)
	f.lists[tide+"issues"] = many(350, 1)
	pages := 0
	f.instead[tide+"issues"] = func(http.ResponseWriter, *http.Request) bool {
		if pages++; pages > 1 {
			f.change(t, tide+"issues", int64(pages),
				object{"updated_at": time.Date(2025, 6, pages, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)})
		}
		return false
	}
	got := f.run(t, f.options(), nil)
	if n := len(ids(changes(got)["issues"])); n != 350 {
		t.Errorf("%d of 350 issues", n)
	}
}

// More items of one second than a page holds are walked by number.
func TestSameSecond(t *testing.T) {
	f := recorded(t)
	for _, n := range []int{100, 150, 250, 300} {
		f.lists[tide+"issues"] = many(n, 1)
		for _, o := range f.lists[tide+"issues"] {
			o["updated_at"] = "2025-05-05T05:05:05Z"
		}
		got := f.run(t, f.options(), nil)
		if all := changes(got)["issues"]; len(all) != n || len(got.Skips) > 0 {
			t.Errorf("%d of %d issues, skips %+v", len(all), n, got.Skips)
		}
	}
}

// A date of the future hides nothing that comes later.
func TestFutureDate(t *testing.T) {
	f := recorded(t)
	f.lists[tide+"issues"] = many(2, 1)
	f.change(t, tide+"issues", 2, object{"updated_at": "9998-01-01T00:00:00Z"})
	first := f.run(t, f.options(), nil)
	f.lists[tide+"issues"] = append(f.lists[tide+"issues"],
		object{"id": json.Number("3"), "created_at": "2025-01-01T00:00:00Z",
			"updated_at": time.Now().Add(time.Minute).UTC().Format(time.RFC3339)})
	if second := f.run(t, f.options(), first); ids(changes(second)["issues"])["3"] != 1 {
		t.Error(second.Transcript)
	}
}

// A list in another order than requested would lose items, so the walk refuses it.
func TestUnsorted(t *testing.T) {
	waiting(t, func(t *testing.T) {
		f := recorded(t)
		const out = `[{"id":1,"updated_at":"2025-01-01T00:00:00Z"},{"id":2,"updated_at":"2025-01-03T00:00:00Z"},{"id":3,"updated_at":"2025-01-02T00:00:00Z"}]`
		for _, list := range []string{"issues", "pulls"} {
			f.instead[tide+list] = says(200, out)
		}
		got := f.run(t, f.options(), nil)
		if s := skips(got); s["issues"] != "answer_unreadable ada/tide" ||
			s["pull_requests"] != "answer_unreadable ada/tide" {
			t.Error(got.Transcript)
		}
	})
}

// Always a next page, each with something new: the walk has an end.
func TestEndlessList(t *testing.T) {
	f := recorded(t)
	served := 0
	f.instead["/user/starred"] = func(w http.ResponseWriter, r *http.Request) bool {
		served++
		w.Header().Set("Link", fmt.Sprintf(`<https://api.github.com/user/starred?page=%d>; rel="next"`, served+1))
		_, _ = fmt.Fprintf(w, `[{"starred_at":"2025-01-01T00:00:00Z","repo":{"id":%d,"full_name":"a/b"}}]`, served)
		return true
	}
	o := f.options()
	o.Scope = `{"streams":[{"name":"stars"},{"name":"repositories"}]}`
	got := f.run(t, o, nil)
	if served != maxPages || skips(got)["stars"] != "answer_unreadable stars" || len(got.Records["repositories"]) != 2 {
		t.Errorf("%d pages, %v", served, skips(got))
	}
}

// A cursor stays within what a host accepts, whatever a server sends: it drops ETags
// first, then the oldest items of an inventory, and says so.
func TestCursorBound(t *testing.T) {
	f := recorded(t)
	var repos []object
	for i := range maxRepositories + 20 {
		id := int64(1<<62) + int64(i)
		name := fmt.Sprintf("%s/%s-%d", strings.Repeat("o", 90), strings.Repeat("n", 90), i)
		repos = append(repos, object{"id": json.Number(key(id)), "full_name": name})
		f.instead["/repos/"+name+"/releases"] = says(200, `[]`, "ETag", `W/"`+strings.Repeat("<", 90)+`"`)
	}
	f.lists["/user/repos"] = repos
	f.instead["/repos/"+repos[0]["full_name"].(string)+"/releases"] = nil
	f.lists["/repos/"+repos[0]["full_name"].(string)+"/releases"] = many(20_000, 1<<61)
	o := f.options()
	o.Scope = `{"streams":[{"name":"repositories"},{"name":"releases"}]}`
	got := f.run(t, o, nil)
	for stream, cursor := range got.States {
		if len(cursor) > maxCursor {
			t.Errorf("%s: %d bytes", stream, len(cursor))
		}
	}
	if !strings.Contains(string(got.States["releases"]), `"ids":[23`) { // 1<<61 is 23…
		t.Error("the inventory went with the ETags")
	}
	if s := skips(got); s["releases"] != "too_many_known  too_many_repositories all others" &&
		s["releases"] != "too_many_known too_many_repositories all others" {
		t.Errorf("skips %q", s)
	}
	if n := len(got.Records["repositories"]); n != maxRepositories+20 {
		t.Errorf("%d repositories", n)
	}
}
