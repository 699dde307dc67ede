//go:build !wasip1

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

// waiting runs a test in which waits take no time.
func waiting(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)))
		test(t)
	})
}

const tide = "/repos/ada/tide/"

// failing are the ways in which a server, or a proxy before it, can fail, and the
// reason that each gives.
var failing = map[string]struct {
	answer func(http.ResponseWriter, *http.Request) bool
	reason string
}{
	"not found":           {says(404, `{"message":"Not Found"}`), "not_found"},
	"forbidden":           {says(403, `{"message":"Resource not accessible by personal access token"}`), "access_denied"},
	"blocked":             {says(451, `{"message":"Repository access blocked","block":{"reason":"dmca"}}`), "blocked"},
	"failed":              {says(500, `<html>Unicorn`), "server_failed"},
	"bad gateway":         {says(502, ``), "server_failed"},
	"accepted":            {says(202, `{}`), "answer_unreadable"},
	"cut short":           {says(200, `[{"id":1,"updated_at":"2026-01-01T00:00:00Z"},{"id":2,"upd`), "answer_unreadable"},
	"empty":               {says(200, ``), "answer_unreadable"},
	"null":                {says(200, `null`), "answer_unreadable"},
	"no list":             {says(200, `{"message":"hello"}`), "answer_unreadable"},
	"no JSON":             {says(200, `<!doctype html>`), "answer_unreadable"},
	"null items":          {says(200, `[null]`), "answer_unreadable"},
	"items without an id": {says(200, `[{"title":"x","updated_at":"2026-01-01T00:00:00Z"}]`), "answer_unreadable"},
	"ids of another type": {says(200, `[{"id":"x"}]`), "answer_unreadable"},
	"negative ids":        {says(200, `[{"id":-1,"updated_at":"2026-01-01T00:00:00Z"}]`), "answer_unreadable"},
	"deep":                {says(200, strings.Repeat("[", 100_000)), "answer_unreadable"},
	"huge":                {huge, "answer_unreadable"},
	"elsewhere":           {says(302, ``, "Location", "https://evil.example/"), "redirected"},
	"in a loop": {says(302, ``, "Location", "https://api.github.com/repos/ada/tide/releases"),
		"answer_unreadable"},
	"the same page": {circle, "answer_unreadable"},
}

// huge is larger than a guest can hold.
func huge(w http.ResponseWriter, _ *http.Request) bool {
	_, _ = w.Write([]byte(`[{"id":1,"updated_at":"2026-01-01T00:00:00Z","body":"`))
	piece := []byte(strings.Repeat("x", 1<<20))
	for range 40 {
		_, _ = w.Write(piece)
	}
	_, _ = w.Write([]byte(`"}]`))
	return true
}

// circle says that there is always a next page, of the same.
func circle(w http.ResponseWriter, r *http.Request) bool {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	w.Header().Set("Link", fmt.Sprintf(`<https://api.github.com%s?page=%d>; rel="next"`, r.URL.Path, page+1))
	id, at := 1, "2025-01-01T00:00:00Z"
	if strings.HasSuffix(r.URL.Path, "/pulls") {
		id, at = 1900000004, "2026-02-28T00:00:00Z" // those from before the last run are not looked at
	}
	_, _ = fmt.Fprintf(w, `[{"id":%d,"created_at":%q,"updated_at":%q}]`, id, at, at)
	return true
}

// One list of one repository that fails costs no other, is told, and is had by
// the next run. Nothing is taken for deleted.
func TestFailing(t *testing.T) {
	for name, c := range failing {
		t.Run(name, func(t *testing.T) {
			waiting(t, func(t *testing.T) {
				f := recorded(t)
				before := f.run(t, f.options(), nil)
				f.change(t, tide+"issues", 2800000001, object{"updated_at": "2026-02-20T00:00:00Z"})
				for _, list := range []string{"issues", "pulls", "releases"} {
					f.instead[tide+list] = c.answer
				}
				got := f.run(t, f.options(), before)
				for stream, records := range changes(got) {
					for _, k := range records {
						if k != "1" && k != "1900000004" { // those of a circle
							t.Errorf("%s emits %s", stream, k)
						}
					}
				}
				reason := c.reason + " ada/tide"
				if diff := cmp.Diff(map[string]string{"issues": reason, "pull_requests": reason, "releases": reason},
					skips(got)); diff != "" {
					t.Fatalf("%s\n%s", diff, got.Transcript)
				}
				f.instead = nil
				after := f.run(t, f.options(), got)
				if all := changes(after)["issues"]; len(all) == 0 || all[len(all)-1] != "2800000001" {
					t.Errorf("issues %v\n%s", all, after.Transcript)
				}
				if all := changes(after); name == "the same page" &&
					(!slices.Contains(all["releases"], "-1") || !slices.Contains(all["pull_requests"], "1900000004")) {
					t.Errorf("what the list that failed had brought is still there\n%s", after.Transcript)
				}
			})
		})
	}
}

// What fails once is asked for once more.
func TestOnceMore(t *testing.T) {
	waiting(t, func(t *testing.T) {
		f := recorded(t)
		f.instead["/user/repos"] = times(1, says(502, ``))
		f.instead[tide+"issues"] = times(1, says(200, `[{"id":`))
		got := f.run(t, f.options(), nil)
		if diff := cmp.Diff(everything, changes(got)); diff != "" || len(got.Skips) > 0 {
			t.Error(diff, got.Skips)
		}
	})
}

// Stars that fail cost no repository; issues that are turned off are none.
func TestStarsFailAndIssuesOff(t *testing.T) {
	waiting(t, func(t *testing.T) {
		f := recorded(t)
		first := f.run(t, f.options(), nil)
		f.instead["/user/starred"] = says(200, ``)
		f.instead[tide+"issues"] = says(410, `{"message":"Issues are disabled for this repo"}`)
		got := f.run(t, f.options(), first)
		if diff := cmp.Diff(map[string]string{"stars": "answer_unreadable stars"}, skips(got)); diff != "" ||
			len(got.Records) > 0 {
			t.Errorf("%s\n%s", diff, got.Transcript)
		}
		f.instead["/user/starred"] = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Link", `<https://api.github.com/user/starred?page=2>; rel="next"`)
			_, _ = w.Write([]byte(`[{"starred_at":"2026-01-01T00:00:00Z","repo":{"id":5,"full_name":"a/b"}}]`))
			return true
		}
		got = f.run(t, f.options(), got)
		f.instead = nil
		if all := changes(f.run(t, f.options(), got))["stars"]; !slices.Contains(all, "-5") {
			t.Errorf("stars %v", all)
		}
	})
}

// failed does a run that must fail, and returns its error.
func failed(t *testing.T, o guesttest.Options) (*guesttest.Result, *abi.DoneError) {
	t.Helper()
	got := guesttest.Run(t, connector, o)
	if got.Status != abi.Failed || got.Done == nil || got.Done.Error == nil {
		t.Fatal(got.Transcript)
	}
	return got, got.Done.Error
}

// A run that can have nothing fails, and says what would help.
func TestNothingToHave(t *testing.T) {
	waiting(t, func(t *testing.T) {
		f := recorded(t)
		f.instead["/user/repos"] = says(401, `{"message":"Bad credentials"}`)
		if _, err := failed(t, f.options()); err.Code != "token_refused" ||
			err.RecoveryHint.Action != guest.RefreshCredentials {
			t.Errorf("%+v", err)
		}
		f.instead["/user/repos"] = says(200, `null`)
		if got, err := failed(t, f.options()); err.Code != "answer_unreadable" || len(got.Records) > 0 {
			t.Errorf("%+v", err)
		}
		o := f.options()
		o.Config = object{"repositories": []string{"no/such", "none/either"}}
		o.Scope = `{"streams":[{"name":"issues"}]}`
		if _, err := failed(t, o); err.Code != "not_found" {
			t.Errorf("%+v", err)
		}
		o.Config = object{"api": "https://github.example/api/v3"}
		if _, err := failed(t, o); err.Code != "host_not_granted" || strings.Contains(err.Message, "handle") {
			t.Errorf("%+v", err)
		}
	})
}

// An item that no host keeps is a gap; the others come.
func TestLargeItem(t *testing.T) {
	f := recorded(t)
	f.lists[tide+"issues"] = many(3, 1)
	f.lists[tide+"issues"][1]["body"] = strings.Repeat("x", 2<<20)
	got := f.run(t, f.options(), nil)
	if diff := cmp.Diff([]string{"1", "3"}, changes(got)["issues"]); diff != "" {
		t.Error(diff)
	}
	if len(got.Gaps) != 1 || got.Gaps[0].RecordKey != "2" {
		t.Errorf("%+v", got.Gaps)
	}
}

// A repository whose name leads elsewhere is left out (a path is made of it).
func TestHostileName(t *testing.T) {
	f := recorded(t)
	f.lists["/user/repos"] = append(f.lists["/user/repos"],
		object{"id": json.Number("9"), "full_name": "../../admin"},
		object{"id": json.Number("10"), "full_name": "ada/x?y=/z"})
	got := f.run(t, f.options(), nil)
	if diff := cmp.Diff(everything, changes(got)); diff != "" {
		t.Error(diff)
	}
	if got := skips(got)["issues"]; got != "answer_unreadable 9 10" {
		t.Errorf("skips %s", got)
	}
}
