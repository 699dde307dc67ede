package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// A connector that writes a secret which it has in plain into a URL
// leaves none of it in the log of requests, not in the host either.
func TestPlainSecretInURL(t *testing.T) {
	base, e := serve(t, func(http.ResponseWriter, *http.Request) {})
	var hops []egress.Hop
	c := client(t, egress.Options{Audit: func(h egress.Hop) { hops = append(hops, h) }}, e)
	s := network.NewSession(c)
	const plain = "Plain/Secret-9"
	s.Protect("token", plain,
		[][]byte{[]byte(plain), []byte(url.PathEscape(plain)), []byte("506c61696e2f5365637265742d39")})
	for _, u := range []string{
		base + "/bot" + plain + "/me", base + "/" + url.PathEscape(plain), base + "/%50lain%2FSecret%2D9?x",
		base + "/506c61696e2f5365637265742d39", "https://506C61696e2f5365637265742d39.evil.example/",
	} {
		_, _ = s.Handle(t.Context(), abi.CallNetworkRequest, frame(`{"method":"GET","url":"`+u+`"}`, ""))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(hops)
	if len(hops) != 5 || strings.Contains(text, "Secret") || strings.Contains(text, "506c") {
		t.Errorf("%d lines: %s", len(hops), text)
	}
	if !strings.Contains(text, "/bot[REDACTED_SECRET]/me") {
		t.Errorf("the rest of the path is not told: %s", text)
	}
}

// What a server says in place of an answer does not reach the guest with
// a sealed value in it either.
func TestSealedInFailure(t *testing.T) {
	const secret = "hunter-two"
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/coding":
			w.Header().Set("Content-Encoding", secret)
		default:
			http.Redirect(w, r, "https://"+secret+".example.com/", http.StatusFound)
		}
	})
	seals := &egress.Seals{}
	seals.Add("token", handle, secret, [][]byte{[]byte(secret)}, nil)
	c := client(t, egress.Options{Seals: seals}, e)
	_, err := get(c, base+"/coding")
	if f := failure(t, err); strings.Contains(f.Message, secret) {
		t.Error(f.Message)
	}
	// Nor does the host follow to where the value would tell itself.
	r, err := get(c, base+"/host")
	if err != nil {
		t.Fatal(err)
	}
	if body(t, r); r.Status != http.StatusFound || strings.Contains(fmt.Sprint(r.Headers), secret) ||
		!strings.Contains(fmt.Sprint(r.Headers), handle) {
		t.Errorf("%d %v", r.Status, r.Headers)
	}
}

// A server that shows what it got gives the guest nothing of a sealed
// value in pieces, whatever it calls it. What is no text can be fetched in pieces
// where no value goes.
func TestSealedInParts(t *testing.T) {
	const secret = "hunter-two"
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", strings.TrimPrefix(r.URL.Path, "/"))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("you sent "+r.Header.Get("X-Key")))
	})
	seals := &egress.Seals{}
	seals.Add("token", handle, secret, [][]byte{[]byte(secret)},
		[]abi.Destination{{Origin: base, Placements: []string{"header:x-key"}}})
	c := client(t, egress.Options{Seals: seals}, e)
	ask := func(kind, part string) (*egress.Response, error) {
		q := &egress.Request{Method: "GET", URL: base + "/" + kind, Headers: [][2]string{{"X-Key", handle}}}
		if part != "" {
			q.Headers = append(q.Headers, [2]string{"Range", part})
		}
		return c.Do(t.Context(), q)
	}
	for _, part := range []string{"bytes=0-12", "bytes=-5", "bytes=9-9,11-11", "bytes=0-12,13-20"} {
		for _, kind := range []string{"text/plain", "image/png", "application/octet-stream"} {
			_, err := ask(kind, part)
			if f := failure(t, err); f.Step != "header" {
				t.Errorf("%s %s: %+v", kind, part, f)
			}
		}
	}
	for _, kind := range []string{"text/plain", "application/yaml", "message/http", "application/jwt",
		"application/x-unheard-of", "multipart/mixed", "nonsense",
		"image/png", "application/octet-stream", "application/zip", "application/pdf", "video/mp4", "font/woff2"} {
		r, err := ask(kind, "")
		if err != nil {
			t.Fatal(kind, err)
		}
		if got := body(t, r); got != "you sent "+handle {
			t.Errorf("%s: %q", kind, got)
		}
	}
	free, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", strings.TrimPrefix(r.URL.Path, "/"))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("you sent nothing"))
	})
	c = client(t, egress.Options{Seals: seals}, e)
	q := &egress.Request{Method: "GET", URL: free + "/image/png", Headers: [][2]string{{"Range", "bytes=0-2"}}}
	r, err := c.Do(t.Context(), q)
	if err != nil || body(t, r) != "you" {
		t.Error("a picture is not fetched in pieces", err)
	}
}

// A body that began before a token was obtained is searched for it too.
func TestSealedWhileReading(t *testing.T) {
	lines := make(chan string)
	base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for line := range lines {
			fmt.Fprint(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	})
	seals := &egress.Seals{}
	current := func(context.Context, string) (string, error) { return "token-of-later", nil }
	seals.AddSource("token", handle, current, nil)
	c := client(t, egress.Options{Seals: seals}, e)
	go func() { lines <- "begun. " }()
	r, err := get(c, base)
	if err != nil {
		t.Fatal(err)
	}
	var b [7]byte
	if _, err := io.ReadFull(r.Body, b[:]); err != nil {
		t.Fatal(err)
	}
	seals.Echo(handle, [][]byte{[]byte("token-of-later")})
	go func() {
		lines <- "Bearer token-"
		lines <- "of-later."
		close(lines)
	}()
	if got := body(t, r); got != "Bearer "+handle+"." {
		t.Errorf("the guest sees %q", got)
	}
}

// The patience of a request is one, however many turns it waits for.
func TestOnePatience(t *testing.T) {
	t.Parallel()
	hops := 0
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hops++
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	slow := egress.NewRateLimiter(egress.RateLimit{PerSecond: 0.5, Burst: 1, AtOnce: 1, LongestStop: time.Minute})
	c := client(t, egress.Options{ConnectorLimiter: slow}, e)
	_, err := c.Do(t.Context(),
		&egress.Request{Method: "GET", URL: base, Redirect: "follow", Wait: 2100 * time.Millisecond})
	if f := failure(t, err); f.Errno != abi.ERATE || hops > 3 {
		t.Errorf("%+v after %d hops", f, hops)
	}
}

// A token that a server hands over in the fragment of a redirect is not in a
// recording.
func TestTokenInFragment(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://app.example/cb#access_token=FRAGMENT-TOKEN-1&state=x")
		w.WriteHeader(http.StatusFound)
	})
	file, _ := recorded(t, e, egress.Header{}, func(s *network.Session) {
		if reply, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
			frame(`{"method":"GET","url":"`+base+`","redirect":"manual"}`, "")); errno != abi.OK {
			t.Fatal(string(reply))
		}
	})
	if strings.Contains(file, "FRAGMENT-TOKEN") || !strings.Contains(file, "#access_token={{credential:1}}") {
		t.Error(file)
	}
}

// A redirect carries no credentials that the guest has in plain to another
// origin, whatever header they are in.
func TestRedirectedPlain(t *testing.T) {
	seen := ""
	other, otherEntry := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen = fmt.Sprint(r.Header) })
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other, http.StatusTemporaryRedirect)
	})
	s := network.NewSession(client(t, egress.Options{}, e, otherEntry))
	defer s.Close()
	s.Protect("token", "PLANTED-1", [][]byte{[]byte("PLANTED-1")})
	headers := `[["Authorization","Basic PLANTED-2"],["X-Api-Key","PLANTED-3"],["Private-Token","PLANTED-4"],["X-Shop","PLANTED-1"],["X-Kept","yes"]]`
	if reply, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(`{"method":"GET","url":"`+base+`","headers":`+headers+`}`, "")); errno != abi.OK {
		t.Fatal(string(reply))
	}
	if strings.Contains(seen, "PLANTED") || !strings.Contains(seen, "X-Kept:[yes]") {
		t.Errorf("the other server saw %s", seen)
	}
}

// A value is found in a short body too, packed and in
// pieces, and an answer that has no body says so, whatever its headers say.
func TestSealedInline(t *testing.T) {
	const secret = "hunter-two"
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/packed":
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			for _, c := range strings.Repeat(secret+".", 20) { // each in a block of its own
				_, _ = z.Write([]byte(string(c)))
				_ = z.Flush()
			}
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", fmt.Sprint(b.Len()))
			_, _ = w.Write(b.Bytes())
		case "/unchanged":
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", "100000")
		}
	})
	seals := &egress.Seals{}
	seals.Add("token", handle, secret, [][]byte{[]byte(secret)}, nil)
	s := network.NewSession(client(t, egress.Options{Seals: seals}, e))
	defer s.Close()
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/packed", strings.Repeat(handle+".", 20)}, {"HEAD", "/head", ""}, {"HEAD", "/packed", ""},
		{"GET", "/unchanged", ""},
	} {
		reply, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
			frame(`{"method":"`+tt.method+`","url":"`+base+tt.path+`","inline_bytes":262144}`, ""))
		if errno != abi.OK {
			t.Fatalf("%s: %s", tt.path, reply)
		}
		n := binary.LittleEndian.Uint32(reply)
		if head, got := string(reply[4:4+n]), string(reply[4+n:]); !strings.HasPrefix(head, `{"handle":0,`) ||
			got != tt.want {
			t.Errorf("%s %s: %s, %q", tt.method, tt.path, head, got)
		}
	}
}
