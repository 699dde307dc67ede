//go:build !wasip1

package guesthttp_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

func get(t *testing.T, f *fake) (*http.Response, error) {
	t.Helper()
	return (&http.Client{Transport: guesthttp.Over(f)}).Get("https://h.example/")
}

// TestMalformedReply: a reply that no host sends is an error, and the handle is
// closed if it can be known.
func TestMalformedReply(t *testing.T) {
	for _, c := range []struct {
		reply  string
		closes int
	}{
		{``, 0},
		{`null`, 0},
		{`[]`, 0},
		{`{"handle":7`, 0},
		{`{"handle":7,"status":200,"headers":[]} trailing`, 0},
		{`{"status":200,"headers":[]}`, 0},
		{`{"handle":4294967296,"status":200,"headers":[]}`, 0},
		{`{"handle":"7","status":200,"headers":[]}`, 0},
		{`{"handle":7}`, 1},
		{`{"handle":7,"status":"200","headers":[]}`, 1},
		{`{"handle":7,"status":-1,"headers":[]}`, 1},
		{`{"handle":7,"status":0,"headers":[]}`, 1},
		{`{"handle":7,"status":101,"headers":[]}`, 1},
		{`{"handle":7,"status":1000,"headers":[]}`, 1},
		{`{"handle":7,"status":1e99,"headers":[]}`, 1},
		{`{"handle":7,"status":200,"headers":{}}`, 1},
		{`{"handle":7,"status":200,"headers":[[]]}`, 1},
		{`{"handle":7,"status":200,"headers":[null]}`, 1},
		{`{"handle":7,"status":200,"headers":[["a"]]}`, 1},
		{`{"handle":7,"status":200,"headers":[["a","b","c"]]}`, 1},
		{`{"handle":7,"status":200,"headers":[["",""]]}`, 1},
		{`{"handle":7,"status":200,"headers":[["a b","c"]]}`, 1},
		{`{"handle":7,"status":200,"headers":[["é","c"]]}`, 1},
		{`{"handle":7,"status":200,"headers":[["a","b\r\nc: d"]]}`, 1},
		{`{"handle":7,"status":200,"headers":[["a","b\u0000"]]}`, 0},
		{`{"handle":7,"status":200,"headers":[["a",1]]}`, 1},
		{`{"handle":7,"status":200,"headers":[],"bytes":-1}`, 1},
		{`{"handle":7,"status":200,"headers":[],"bytes":"9"}`, 1},
	} {
		f := &fake{reply: c.reply}
		if res, err := get(t, f); err == nil {
			t.Errorf("%s: status %q, want an error", c.reply, res.Status)
		} else if !strings.Contains(err.Error(), "malformed reply") {
			t.Errorf("%s: %v", c.reply, err)
		}
		if f.closes != c.closes || f.closes > 0 && f.closed != 7 {
			t.Errorf("%s: closed %d times, handle %d", c.reply, f.closes, f.closed)
		}
	}
}

// TestResponse is what a library may look at.
func TestResponse(t *testing.T) {
	f := &fake{
		reply: `{"handle":7,"status":418,"headers":[["x-a","1"],["X-A","2"],["content-type","text/plain"]],"url":"u","redirects":0,"bytes":5,"more":1}`,
		body:  []byte("hello"),
	}
	res, err := get(t, f)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if string(body) != "hello" || err != nil {
		t.Errorf("body %q, %v", body, err)
	}
	if diff := cmp.Diff(http.Header{"X-A": {"1", "2"}, "Content-Type": {"text/plain"}}, res.Header); diff != "" {
		t.Error(diff)
	}
	if res.Status != "418 I'm a teapot" || res.StatusCode != 418 || res.Proto != "HTTP/1.1" || !res.ProtoAtLeast(1, 1) ||
		res.ContentLength != 5 || res.Uncompressed || res.Request.URL.Path != "/" {
		t.Errorf("response %+v", res)
	}
}

// TestStatusWithoutName: the text is the number alone.
func TestStatusWithoutName(t *testing.T) {
	f := &fake{reply: strings.Replace(ok, "200", "999", 1)}
	res, err := get(t, f)
	if err != nil || res.Status != "999" || res.ContentLength != -1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestNoBody: where there is no body the handle is closed at once.
func TestNoBody(t *testing.T) {
	for _, c := range []struct {
		method, reply string
		length        int64
	}{
		{"HEAD", ok, -1},
		{"HEAD", strings.Replace(ok, `"url"`, `"bytes":1234,"url"`, 1), 1234},
		{"GET", strings.Replace(ok, "200", "204", 1), 0},
		{"GET", strings.Replace(ok, "200", "304", 1), 0},
		{"GET", strings.Replace(ok, `"url"`, `"bytes":0,"url"`, 1), 0},
	} {
		f := &fake{reply: c.reply, body: []byte("not to be read")}
		req, err := http.NewRequestWithContext(t.Context(), c.method, "https://h.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := guesthttp.Over(f).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body != http.NoBody || res.ContentLength != c.length || f.closes != 1 || f.reads != 0 {
			t.Errorf("%s %s: body %v, length %d, %d closes, %d reads", c.method, c.reply, res.Body,
				res.ContentLength, f.closes, f.reads)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add(ok)
	f.Add(`{"handle":7,"status":301,"headers":[["Location","::"]],"bytes":3}`)
	f.Add(`{"handle":7,"status":999,"headers":[["a"]]}`)
	f.Fuzz(func(t *testing.T, reply string) {
		host := &fake{reply: reply, body: []byte("body")}
		req, err := http.NewRequestWithContext(t.Context(), "GET", "https://h.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := guesthttp.Over(host).RoundTrip(req)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		if err := res.Body.Close(); err != nil || host.closes != 1 {
			t.Errorf("%d closes, %v", host.closes, err)
		}
	})
}

// inline is a reply with the beginning of its body.
func inline(reply, body string) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(len(reply)))) + reply + body
}

// TestInline: a body that came with its answer costs no call; what is left of
// one that came in part is read from its handle.
func TestInline(t *testing.T) {
	for _, c := range []struct {
		handle, body, rest    string
		reads, closes, length int
	}{
		{"0", "all of it", "", 0, 0, 9},
		{"0", "", "", 0, 0, 0},
		{"7", "a part", " and the rest", 2, 1, 19},
		{"7", "", "the rest", 2, 1, 8},
	} {
		f := &fake{reply: inline(`{"handle":`+c.handle+
			`,"status":200,"headers":[["a","b"]],"url":"https://h.example/","redirects":0}`, c.body), body: []byte(c.rest)}
		res, err := get(t, f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || string(got) != c.body+c.rest || len(got) != c.length {
			t.Errorf("%q, %v; want %q", got, err, c.body+c.rest)
		}
		if err := res.Body.Close(); err != nil || f.reads != c.reads || f.closes != c.closes {
			t.Errorf("%q: %v, %d reads, %d closes; want %d and %d", c.body, err, f.reads, f.closes, c.reads, c.closes)
		}
		if _, err := res.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("read after close: %v", err)
		}
	}
	for _, bad := range []string{inline(`{"handle":0,"status":200}`, ""), inline(`{}`, "x"),
		`{"handle":0,"status":200,"headers":[]}`} {
		f := &fake{reply: bad}
		if _, err := get(t, f); err == nil || f.closes != 0 {
			t.Errorf("%q: %v, %d closes", bad, err, f.closes)
		}
	}
}
