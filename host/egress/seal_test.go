package egress_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

const (
	handle = "sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa"
	other  = "sluice-sealed-v1-bbbbbbbbbbbbbbbbbbbbbbbbbb"
	value  = `pa"ss&word sealed`
)

// seen is what a server got.
func seen(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/api/away":
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		w.Header().Set("X-Echo", strings.ReplaceAll(r.Header.Get("X-Key"), "\n", ""))
		fmt.Fprintf(w, "%s|%s|%s", r.Header.Get("Authorization"), r.Header.Get("X-Key"), b)
	}
}

// sealing is a client with one secret for one place at base.
func sealing(t *testing.T, base string, entries ...egress.Entry) (*egress.Client, *egress.Seals) {
	t.Helper()
	s := &egress.Seals{}
	s.Add("token", handle, value, [][]byte{[]byte(value), []byte(url.QueryEscape(value))}, []abi.Destination{
		{Origin: base, PathPrefix: "/api", Placements: []string{"header:Authorization", "header:x-key", "body"}},
	})
	return client(t, egress.Options{Seals: s}, entries...), s
}

// A sealed value goes where it may, comes back as its handle, and is told of.
func TestSealed(t *testing.T) {
	var got string
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s|%s|%s", r.Header.Get("Authorization"), r.Header.Get("X-Key"), b)
		r.Body = io.NopCloser(bytes.NewReader(b))
		seen(w, r)
	})
	elsewhere, elsewhereEntry := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if strings.Contains(fmt.Sprint(r.Header, r.URL), "pa\"ss") {
			t.Error("the value went elsewhere")
		}
	})
	c, seals := sealing(t, base, e, elsewhereEntry)
	for _, tt := range []struct {
		name, path, header, text, kind, body string
		want, code                           string
	}{
		{name: "header", path: "/api/x", header: "X-Key", text: "k " + handle, want: "|k " + value + "|"},
		{name: "bearer", path: "/api", header: "authorization", text: "Bearer " + handle, want: "Bearer " + value + "||"},
		{name: "basic", path: "/api/", header: "Authorization", text: "Basic-Sealed me:" + handle,
			want: "Basic bWU6cGEic3Mmd29yZCBzZWFsZWQ=||"},
		{name: "json", path: "/api/x", kind: "application/json", body: `{"a":"` + handle + `"}`,
			want: `||{"a":"pa\"ss&word sealed"}`},
		{name: "form", path: "/api/x", kind: "application/x-www-form-urlencoded", body: "a=" + handle,
			want: "||a=pa%22ss%26word+sealed"},
		{name: "text", path: "/api/x", kind: "text/plain; charset=utf-8", body: handle + handle, want: "||" + value + value},
		{name: "binary", path: "/api/x", kind: "application/octet-stream", body: handle, code: "sealed_placement_denied"},
		{name: "no type", path: "/api/x", body: handle, code: "sealed_placement_denied"},
		{name: "long", path: "/api/x", kind: "text/plain", body: handle + strings.Repeat("x", 1<<20),
			code: "sealed_placement_denied"},
		{name: "other header", path: "/api/x", header: "X-Other", text: handle, code: "sealed_placement_denied"},
		{name: "query", path: "/api/x?k=" + handle, code: "sealed_placement_denied"},
		{name: "escaped query", path: "/api/x?k=sluice%2Dsealed%2Dv1-aaaaaaaaaaaaaaaaaaaaaaaaaa",
			code: "sealed_placement_denied"},
		{name: "path", path: "/api/" + handle, code: "sealed_placement_denied"},
		{name: "outside the prefix", path: "/apix", header: "X-Key", text: handle, code: "sealed_destination_denied"},
		{name: "dots", path: "/api/../admin", header: "X-Key", text: handle, code: "sealed_destination_denied"},
		{name: "escaped dots", path: "/api/%2e%2e/admin", header: "X-Key", text: handle, code: "sealed_destination_denied"},
		{name: "escaped slash", path: "/api/..%2fadmin", header: "X-Key", text: handle, code: "sealed_destination_denied"},
		{name: "unknown", path: "/api/x", header: "X-Key", text: other, code: "sealed_handle_unknown"},
		{name: "cut short", path: "/api/x", header: "X-Key", text: handle[:30], code: "sealed_handle_unknown"},
		{name: "one of two", path: "/api/x", header: "X-Key", text: handle + other, code: "sealed_handle_unknown"},
		{name: "redirect within", path: "/api/away?to=/api/x", header: "X-Key", text: handle, want: "|" + value + "|"},
		{name: "redirect out of the prefix", path: "/api/away?to=/admin", header: "X-Key", text: handle,
			code: "sealed_destination_denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got = ""
			q := &egress.Request{Method: "POST", URL: base + tt.path, Redirect: "follow", Body: []byte(tt.body)}
			if tt.header != "" {
				q.Headers = append(q.Headers, [2]string{tt.header, tt.text})
			}
			if tt.kind != "" {
				q.Headers = append(q.Headers, [2]string{"Content-Type", tt.kind})
			}
			r, err := c.Do(t.Context(), q)
			if tt.code != "" {
				if e := failure(t, err); e.Errno != abi.EDENIED || e.Code != tt.code {
					t.Errorf("%+v, want %s", e, tt.code)
				}
				if strings.Contains(got, "pa\"ss") && !strings.HasPrefix(tt.name, "redirect") {
					t.Error("the value was sent")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("the server got %q, want %q", got, tt.want)
			}
			echo := body(t, r)
			if strings.Contains(echo, value) || strings.Contains(fmt.Sprint(r.Headers), "pa\"ss") {
				t.Errorf("the guest sees the value: %q, %v", echo, r.Headers)
			}
		})
	}

	// To another origin the guest is shown the redirect.
	r, err := c.Do(t.Context(), &egress.Request{
		Method: "GET", URL: base + "/api/away?to=" + url.QueryEscape(elsewhere), Redirect: "follow",
		Headers: [][2]string{{"X-Key", handle}},
	})
	if err != nil || r.Status != http.StatusTemporaryRedirect {
		t.Fatal(r, err)
	}
	r.Body.Close()
	_, err = c.Do(t.Context(),
		&egress.Request{Method: "GET", URL: elsewhere, Redirect: "follow", Headers: [][2]string{{"X-Key", handle}}})
	if e := failure(t, err); e.Code != "sealed_destination_denied" {
		t.Errorf("%+v", e)
	}

	var uses []string
	note := func(field, origin, placement string) {
		uses = append(uses, field+" "+strings.TrimPrefix(origin, base)+placement)
	}
	seals.Uses(note)
	seals.Uses(note)
	if diff := cmp.Diff([]string{"token header:x-key", "token header:authorization", "token body"}, uses); diff != "" {
		t.Error(diff)
	}
}

// Across the borders of what is read, and with a value that is part of
// its own handle.
func TestScrub(t *testing.T) {
	text := strings.Repeat("x", 40_000) + value + "." + strings.Repeat(value, 3) +
		url.QueryEscape(value) + "tail sealed pa"
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader,
		"late end": iotest.DataErrReader,
	} {
		got, err := io.ReadAll(egress.Scrub(wrap(strings.NewReader(text)),
			map[string][]string{handle: {value, url.QueryEscape(value), "sealed"}}))
		if err != nil {
			t.Fatal(name, err)
		}
		want := strings.Repeat("x", 40_000) + handle + "." + strings.Repeat(handle, 4) + "tail " + handle + " pa"
		if string(got) != want {
			t.Errorf("%s: …%s", name, got[39_990:])
		}
	}
}

func FuzzScrub(f *testing.F) {
	f.Add("a secret in a text", "secret", 3)
	f.Add("ssssss", "ss", 1)
	f.Fuzz(func(t *testing.T, text, value string, piece int) {
		if len(value) < 2 || strings.Contains(handle, value) || piece < 1 {
			t.Skip()
		}
		got, err := io.ReadAll(egress.Scrub(&pieces{strings.NewReader(text), piece}, map[string][]string{handle: {value}}))
		want := strings.ReplaceAll(text, value, handle)
		for n := len(value) - 1; n >= 4 && !strings.HasSuffix(want, handle); n-- {
			if rest, cut := strings.CutSuffix(want, value[:n]); cut {
				want = rest + handle // the beginning of one at the end
			}
		}
		if err != nil || string(got) != want {
			t.Errorf("%q: %v", got, err)
		}
	})
}

// pieces reads so many bytes at a time.
type pieces struct {
	r    io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }
