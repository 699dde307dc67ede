//go:build !wasip1

package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

// A fake is a GitHub: lists by path, with its ways of paging, sorting and
// saying that nothing changed.
type fake struct {
	mu     sync.Mutex // guards all below
	lists  map[string][]object
	single map[string]object
	// instead answers requests whose path has it as an entry, until it says that
	// it did not.
	instead map[string]func(w http.ResponseWriter, r *http.Request) bool
	asked   []string // path, and status where it is not 200
	tokens  map[string]bool
	base    string // before the path
}

type object = map[string]any

// recorded is a fake with the answers of testdata.
func recorded(t *testing.T) *fake {
	t.Helper()
	f := &fake{lists: map[string][]object{}, single: map[string]object{},
		instead: map[string]func(http.ResponseWriter, *http.Request) bool{}, tokens: map[string]bool{}}
	dir := os.DirFS("testdata")
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		path, ok := strings.CutSuffix(name, ".json")
		if err != nil || !ok {
			return err
		}
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(b, []byte("[")) {
			var list []object
			err = decode(b, &list)
			f.lists["/"+path] = list
			return err
		}
		var one object
		err = decode(b, &one)
		f.single["/"+path] = one
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// decode keeps numbers as they are.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, f.base)
	s := &outcome{ResponseWriter: w, code: http.StatusOK}
	f.mu.Lock()
	f.tokens[r.Header.Get("Authorization")] = true
	instead := f.instead[path]
	f.mu.Unlock()
	if instead == nil || !instead(s, r) {
		f.answer(s, r, path)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.code != http.StatusOK {
		path += " " + strconv.Itoa(s.code)
	}
	f.asked = append(f.asked, path)
}

// An outcome is a ResponseWriter that knows what it said.
type outcome struct {
	http.ResponseWriter
	code int
}

func (s *outcome) WriteHeader(code int) { s.code = code; s.ResponseWriter.WriteHeader(code) }

func (f *fake) answer(w http.ResponseWriter, r *http.Request, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one, ok := f.single[path]; ok {
		conditional(w, r, one)
		return
	}
	list, ok := f.lists[path]
	if !ok {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	q := r.URL.Query()
	list = slices.Clone(list)
	if q.Get("sort") == "updated" {
		slices.SortStableFunc(list, func(a, b object) int { return cmp.Compare(updated(a), updated(b)) })
		if q.Get("direction") == "desc" {
			slices.Reverse(list)
		}
	}
	if since := q.Get("since"); since != "" {
		list = slices.DeleteFunc(list, func(o object) bool { return updated(o) < since })
	}
	size, _ := strconv.Atoi(q.Get("per_page"))
	page, _ := strconv.Atoi(q.Get("page"))
	size, page = min(max(size, 1), 100), max(page, 1)
	from := min((page-1)*size, len(list))
	to := min(from+size, len(list))
	if to < len(list) {
		q.Set("page", strconv.Itoa(page+1))
		w.Header().Set("Link", fmt.Sprintf(`<https://api.github.com%s?%s>; rel="next"`, path, q.Encode()))
	}
	conditional(w, r, append([]object{}, list[from:to]...))
}

func updated(o object) string { text, _ := o["updated_at"].(string); return text }

// conditional answers 304 to a client that already has the current version.
func conditional(w http.ResponseWriter, r *http.Request, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	etag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(b))
	w.Header().Set("ETag", etag)
	w.Header().Set("X-Ratelimit-Remaining", "4999")
	w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(b)
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"message":%q,"documentation_url":"https://docs.github.com/rest","status":"%d"}`, message, code)
}

// says answers every request alike.
func says(code int, body string, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
		return true
	}
}

// times answers the first n requests, and leaves others alone.
func times(n int, f func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		n--
		return n >= 0 && f(w, r)
	}
}

// change edits an item of a list and returns it.
func (f *fake) change(t *testing.T, path string, id int64, members object) {
	t.Helper()
	for _, o := range f.lists[path] {
		if o["id"] == json.Number(key(id)) {
			maps.Copy(o, members)
			return
		}
	}
	t.Fatalf("%s has no %d", path, id)
}

// many returns n items that changed a minute apart from each other.
func many(n int, first int64) []object {
	var out []object
	for i := range n {
		at := time.Date(2025, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339)
		out = append(out, object{"id": json.Number(key(first + int64(i))), "number": i + 1, "title": fmt.Sprint("no. ", i),
			"created_at": at, "updated_at": at})
	}
	return out
}

// options are a run against the fake as of a token.
func (f *fake) options() guesttest.Options {
	return guesttest.Options{Manifest: manifest, Network: f, Secrets: map[string]string{"token": "handle"}}
}

// run does one run from the state of the last one, nil for a first.
func (f *fake) run(t *testing.T, o guesttest.Options, last *guesttest.Result) *guesttest.Result {
	t.Helper()
	f.asked = nil
	if last != nil {
		o.State = map[string]any{}
		for name, cursor := range last.States {
			o.State[name] = cursor
		}
	}
	got := guesttest.Run(t, connector, o)
	if got.Status != abi.Succeeded {
		t.Fatalf("done %+v\n%s", got.Done, got.Transcript)
	}
	return got
}

// changes are the keys that a run emitted, by stream; "-" is before those it
// deleted.
func changes(got *guesttest.Result) map[string][]string {
	out := map[string][]string{}
	for stream, records := range got.Records {
		for _, r := range records {
			k := r.Key
			if r.Deleted {
				k = "-" + k
			}
			out[stream] = append(out[stream], k)
		}
	}
	return out
}

// skips are the reasons of a run by stream, with what they name.
func skips(got *guesttest.Result) map[string]string {
	out := map[string]string{}
	for _, s := range got.Skips {
		out[s.Stream] = strings.TrimSpace(out[s.Stream] + " " + s.Reason + " " + strings.Join(s.ResourceIDs, " "))
	}
	return out
}
