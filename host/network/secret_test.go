package network_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/network"
)

// R165: a connector that writes a secret which it has in plain into a URL
// leaves none of it in the log of requests, not in the host either.
func TestPlainSecretInURL(t *testing.T) {
	base, e := serve(t, func(http.ResponseWriter, *http.Request) {})
	var hops []network.Hop
	c := client(t, network.Options{Audit: func(h network.Hop) { hops = append(hops, h) }}, e)
	s := network.NewSession(c)
	const plain = "Plain/Secret-9"
	s.Protect("token", plain, [][]byte{[]byte(plain), []byte(url.PathEscape(plain)), []byte("506c61696e2f5365637265742d39")})
	for _, u := range []string{
		base + "/bot" + plain + "/me", base + "/" + url.PathEscape(plain), base + "/%50lain%2FSecret%2D9?x", base + "/506c61696e2f5365637265742d39",
		"https://506C61696e2f5365637265742d39.evil.example/",
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

// R163: what a server says in place of an answer does not reach the guest with
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
	seals := &network.Seals{}
	seals.Add("token", handle, secret, [][]byte{[]byte(secret)}, nil)
	c := client(t, network.Options{Seals: seals}, e)
	for _, path := range []string{"/coding", "/host"} {
		_, err := get(c, base+path)
		if f := failure(t, err); strings.Contains(f.Message, secret) {
			t.Errorf("%s: %s", path, f.Message)
		}
	}
}

// R163: a server that shows what it got gives the guest nothing of a sealed
// value in pieces, nor as a kind of text that has no name of its own; what is no
// text can be fetched in pieces.
func TestSealedInParts(t *testing.T) {
	const secret = "hunter-two"
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", strings.TrimPrefix(r.URL.Path, "/"))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("you sent "+r.Header.Get("X-Key")))
	})
	seals := &network.Seals{}
	seals.Add("token", handle, secret, [][]byte{[]byte(secret)}, []abi.Destination{{Origin: base, Placements: []string{"header:x-key"}}})
	c := client(t, network.Options{Seals: seals}, e)
	ask := func(kind, part string) (*network.Response, error) {
		q := &network.Request{Method: "GET", URL: base + "/" + kind, Headers: [][2]string{{"X-Key", handle}}}
		if part != "" {
			q.Headers = append(q.Headers, [2]string{"Range", part})
		}
		return c.Do(t.Context(), q)
	}
	for _, part := range []string{"bytes=0-12", "bytes=-5", "bytes=9-9,11-11", "bytes=0-12,13-20"} {
		_, err := ask("text/plain", part)
		if f := failure(t, err); f.Step != "header" {
			t.Errorf("%s: %+v", part, f)
		}
	}
	for _, kind := range []string{"text/plain", "application/yaml", "message/http", "application/jwt", "application/x-unheard-of", "multipart/mixed", "nonsense"} {
		r, err := ask(kind, "")
		if err != nil {
			t.Fatal(kind, err)
		}
		if got := body(t, r); got != "you sent "+handle {
			t.Errorf("%s: %q", kind, got)
		}
	}
	r, err := ask("image/png", "bytes=0-2")
	if err != nil || body(t, r) != "you" {
		t.Error("a picture is not fetched in pieces", err)
	}
}
