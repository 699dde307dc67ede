//go:build !wasip1

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

// A fake is a DAV server with one user, sam, who owns everything in it. Tests set every
// fault that it has.
type fake struct {
	items   map[string]string // path of an object -> text
	edition map[string]int    // path -> change that made it
	gone    map[string]int    // path -> change that removed it
	change  int

	noSync  bool // it has no sync-collection
	oldest  int  // sync tokens before it are unknown
	pages   int  // changes of one answer; 0: all
	refuses func(r *http.Request, body string) int
	asked   []string
}

func newFake() *fake {
	return &fake{items: map[string]string{}, edition: map[string]int{}, gone: map[string]int{}}
}

func (f *fake) put(path, text string) {
	f.change++
	f.items[path], f.edition[path] = text, f.change
	delete(f.gone, path)
}

func (f *fake) event(path string, lines ...string) {
	uid := "UID:" + path
	f.put(path, "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nDTSTAMP:20260101T000000Z\r\n"+uid+"\r\n"+
		strings.Join(lines, "\r\n")+"\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
}

func (f *fake) remove(path string) {
	f.change++
	delete(f.items, path)
	f.gone[path] = f.change
}

var collectionsOfFake = map[string]string{
	"/dav/sam/work/":   `<collection/><C:calendar/>`,
	"/dav/sam/home/":   `<collection/><C:calendar/>`,
	"/dav/sam/inbox/":  `<collection/><C:schedule-inbox/>`,
	"/dav/sam/people/": `<collection/><A:addressbook/>`,
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	body := string(b)
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	if f.refuses != nil {
		if status := f.refuses(r, body); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	switch {
	case r.Header.Get("Authorization") != "Basic-Sealed sam:pa55w0rd":
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/.well-known/"):
		w.Header().Set("Location", "/dav/")
		w.WriteHeader(http.StatusMovedPermanently)
	case r.URL.Path == "/dav/":
		multistatus(w, one(r.URL.Path,
			`<resourcetype><collection/></resourcetype><current-user-principal><href>/dav/principals/sam/</href></current-user-principal>`))
	case r.URL.Path == "/dav/principals/sam/":
		multistatus(w, one(r.URL.Path,
			`<C:calendar-home-set><href>/dav/sam/</href></C:calendar-home-set><A:addressbook-home-set><href>/dav/sam/</href></A:addressbook-home-set>`))
	case r.Method == http.MethodGet && f.items[r.URL.Path] != "":
		w.Header().Set("ETag", f.etag(r.URL.Path))
		fmt.Fprint(w, f.items[r.URL.Path])
	case r.Method == "PROPFIND" && r.URL.Path == "/dav/sam/":
		all := one("/dav/sam/", `<resourcetype><collection/></resourcetype>`)
		for _, path := range slices.Sorted(maps.Keys(collectionsOfFake)) {
			all += one(path, f.collection(path))
		}
		multistatus(w, all)
	case r.Method == "PROPFIND" && collectionsOfFake[r.URL.Path] != "" && r.Header.Get("Depth") == "0":
		multistatus(w, one(r.URL.Path, f.collection(r.URL.Path)))
	case r.Method == "PROPFIND" && collectionsOfFake[r.URL.Path] != "":
		multistatus(w, one(r.URL.Path, `<resourcetype><collection/></resourcetype>`)+f.list(r.URL.Path, 0))
	case r.Method == "REPORT" && strings.Contains(body, "multiget"):
		multistatus(w, f.multiget(body))
	case r.Method == "REPORT" && strings.Contains(body, "sync-collection") && !f.noSync:
		f.sync(w, r.URL.Path, body)
	case r.Method == "REPORT":
		w.WriteHeader(http.StatusForbidden)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fake) collection(path string) string {
	props := `<resourcetype>` + collectionsOfFake[path] + `</resourcetype><displayname>` +
		path[len("/dav/sam/"):len(path)-1] + `</displayname>`
	if !f.noSync {
		props += "<sync-token>" + f.token(path, f.change) + "</sync-token>"
	}
	return props
}

// token names the newest change of a collection up to one.
func (f *fake) token(collection string, until int) string {
	newest := 0
	for _, changes := range []map[string]int{f.edition, f.gone} {
		for path, n := range changes {
			if strings.HasPrefix(path, collection) && n <= until {
				newest = max(newest, n)
			}
		}
	}
	return "urn:token:" + strconv.Itoa(newest)
}

func (f *fake) etag(path string) string { return fmt.Sprintf(`"%d"`, f.edition[path]) }

// list says which objects of a collection are newer than a change.
func (f *fake) list(collection string, since int) string {
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(f.items)) {
		if strings.HasPrefix(path, collection) && f.edition[path] > since {
			out.WriteString(one(path, "<getetag>"+strings.ReplaceAll(f.etag(path), `"`, "&quot;")+"</getetag>"))
		}
	}
	return out.String()
}

func (f *fake) sync(w http.ResponseWriter, collection, body string) {
	_, rest, _ := strings.Cut(body, "<sync-token>")
	text, _, _ := strings.Cut(rest, "</sync-token>")
	since := 0
	if text != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(text, "urn:token:"))
		if err != nil || n < f.oldest {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<error xmlns="DAV:"><valid-sync-token/></error>`)
			return
		}
		since = n
	}
	type one struct {
		n    int
		text string
	}
	var changes []one
	for path, n := range f.edition {
		if strings.HasPrefix(path, collection) && n > since && f.items[path] != "" {
			changes = append(changes,
				one{n, response1(path, `<propstat><prop><getetag>`+strings.ReplaceAll(f.etag(path), `"`, "&quot;")+
					`</getetag></prop><status>HTTP/1.1 200 OK</status></propstat>`)})
		}
	}
	for path, n := range f.gone {
		if strings.HasPrefix(path, collection) && n > since && text != "" {
			changes = append(changes, one{n, response1(path, `<status>HTTP/1.1 404 Not Found</status>`)})
		}
	}
	slices.SortFunc(changes, func(a, b one) int { return a.n - b.n })
	token, more := f.token(collection, f.change), ""
	if f.pages > 0 && len(changes) > f.pages {
		changes = changes[:f.pages]
		token, more = f.token(collection, changes[f.pages-1].n),
			response1(collection, `<status>HTTP/1.1 507 Insufficient Storage</status>`)
	}
	out := more
	for _, c := range changes {
		out += c.text
	}
	multistatus(w, out+"<sync-token>"+token+"</sync-token>")
}

func (f *fake) multiget(body string) string {
	var out strings.Builder
	for _, part := range strings.Split(body, "<href>")[1:] {
		href, _, _ := strings.Cut(part, "</href>")
		path, err := url.PathUnescape(href)
		if err != nil || f.items[path] == "" {
			out.WriteString(response1(href, `<status>HTTP/1.1 404 Not Found</status>`))
			continue
		}
		name := "C:calendar-data"
		if strings.HasSuffix(path, ".vcf") {
			name = "A:address-data"
		}
		out.WriteString(one(path, "<getetag>"+strings.ReplaceAll(f.etag(path), `"`, "&quot;")+"</getetag><"+name+">"+
			escape(f.items[path])+"</"+name+">"))
	}
	return out.String()
}

func one(path, props string) string {
	return response1(path, `<propstat><prop><getlastmodified/></prop><status>HTTP/1.1 404 Not Found</status></propstat><propstat><prop>`+props+`</prop><status>HTTP/1.1 200 OK</status></propstat>`)
}

func response1(path, inner string) string {
	u := url.URL{Path: path}
	return `<response><href>` + escape(u.EscapedPath()) + `</href>` + inner + `</response>`
}

func multistatus(w http.ResponseWriter, inner string) {
	w.WriteHeader(http.StatusMultiStatus)
	fmt.Fprint(w, `<?xml version="1.0"?><multistatus `+namespaces+`>`+inner+`</multistatus>`)
}

// A device runs the connector again and again, with what the last run left.
type device struct {
	t       *testing.T
	options guesttest.Options
}

func newDevice(t *testing.T, f *fake) *device {
	t.Helper()
	before, after, ok := strings.Cut(string(manifest), `"network": {"required": true`)
	if !ok {
		t.Fatal("the manifest asks for no network")
	}
	return &device{t, guesttest.Options{
		Manifest: []byte(before + `"network": {"required": true, "hosts": ["dav.example"]` + after), Network: f,
		Config:  map[string]any{"url": "https://dav.example/", "user": "sam"},
		Secrets: map[string]string{"password": "pa55w0rd"},
	}}
}

// run keeps the cursors of a run that succeeds, as a host does.
func (d *device) run() *guesttest.Result {
	d.t.Helper()
	got := guesttest.Run(d.t, connector, d.options)
	if got.Done != nil && got.Done.Status == "succeeded" {
		if d.options.State == nil {
			d.options.State = map[string]any{}
		}
		for name, c := range got.States {
			d.options.State[name] = json.RawMessage(c)
		}
	}
	return got
}

// of lists the records of a stream in order, as their paths, deletions as "-".
func of(r *guesttest.Result, stream string) []string {
	out := []string{}
	for _, one := range r.Records[stream] {
		var data struct{ Path string }
		if one.Deleted {
			data.Path = "-"
		} else if err := one.Decode(&data); err != nil {
			panic(err)
		}
		out = append(out, strings.TrimPrefix(data.Path, "/dav/sam/"))
	}
	slices.Sort(out)
	return out
}
