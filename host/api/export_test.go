package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/api"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// NDJSON with its last line, CSV with its columns; both as of the version that
// the header names, as a download, and written down.
func TestExport(t *testing.T) {
	c := served(t)
	id := connection(t, "export", "live")
	collect(t, id, "mails", mails(1, 3)...)
	collect(t, id, "mails", change{key: "m02"})
	at := "/v1/connections/export/streams/mails/export"
	a := c.do("GET", at, nil).want(200)
	lines := strings.SplitAfter(strings.TrimSuffix(string(a.body), "\n"), "\n")
	sum := sha256.Sum256([]byte(strings.Join(lines[:len(lines)-1], "")))
	if want := fmt.Sprintf(`{"end":true,"records":2,"digest":"sha256:%s"}`,
		hex.EncodeToString(sum[:])); lines[len(lines)-1] != want || len(lines) != 3 {
		t.Errorf("%s, want %s", a.body, want)
	}
	for name, want := range map[string]string{"Sluice-Export-Version": "4", "Content-Type": "application/x-ndjson",
		"Content-Security-Policy": "sandbox",
		"Content-Disposition":     `attachment; filename="export-mails.ndjson"`} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	asCSV := c.do("GET", at+"?format=csv&includeDeleted=true", nil).want(200)
	if n := asCSV.header.Get("Sluice-Export-Records"); n != "3" {
		t.Errorf("it says that it has %q records", n)
	}
	rows, err := csv.NewReader(bytes.NewReader(asCSV.body)).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatal(rows, err)
	}
	if got := strings.Join(rows[0],
		","); got != "connectionId,stream,key,emittedAt,ingestedAt,version,runId,deleted,deletedAt,id,subject,seq,sent,to,extra" {
		t.Error(got)
	}
	if got := strings.Join(rows[1][9:], ","); got != `m01,'=s1,1,2026-01-01T00:00:00Z,["a@x"],1` {
		t.Error(got)
	}
	if got := strings.Join(rows[3][7:11], ","); got == "" || !strings.HasPrefix(got, "true,2") ||
		!strings.HasSuffix(got, ",,") {
		t.Errorf("a tombstone: %v", rows[3])
	}
	if a := c.do("GET", at+"?filter=seq:gt:1&fields=seq", nil).want(200); !strings.Contains(string(a.body),
		`"data":{"id":"m03","seq":3}`) || strings.Count(string(a.body), "\n") != 2 {
		t.Errorf("%s", a.body)
	}
	if a := c.do("GET", at+"?order=-key", nil).want(200); !strings.HasPrefix(string(a.body),
		`{"connectionId":"export","stream":"mails","key":"m03"`) {
		t.Errorf("%s", a.body)
	}
	c.do("GET", at+"?format=parquet", nil).want(400, "validation_error")
	c.do("GET", at+"?filter=subject:eq:1", nil).want(400, "unsupported_filter")
	log := c.do("GET", "/v1/audit?action=records.exported&target=export", nil).want(200)
	if n := len(log.list("data")); n != 4 {
		t.Errorf("%d entries: %s", n, log.body)
	}
	if log.text("data", 0, "details", "stream") != "mails" || log.text("data", 0, "actor") == "" {
		t.Errorf("%s", log.body)
	}
}

// Names that a connector chooses do not make a file of a million columns, and the
// client is told before anything is sent.
func TestExportColumns(t *testing.T) {
	c := served(t)
	id := connection(t, "columns", "live")
	var data strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&data, `,"f%d":1`, i)
	}
	collect(t, id, "mails", change{key: "a", data: `{"id":"a"` + data.String() + `}`})
	c.do("GET", "/v1/connections/columns/streams/mails/export?format=csv", nil).want(400, "validation_error")
	c.do("GET", "/v1/connections/columns/streams/mails/export?format=csv&fields=f1", nil).want(200)
	c.do("GET", "/v1/connections/columns/streams/mails/export", nil).want(200)
}

// What is written while an export runs does not appear in it; so many at once and
// no more.
func TestExportConsistent(t *testing.T) {
	c := served(t)
	id := connection(t, "consistent", "live")
	filler := strings.Repeat("x", 60_000)
	big := func(mark string) (out []change) {
		for n := range 200 {
			out = append(out, change{key: fmt.Sprintf("m%03d", n),
				data: fmt.Sprintf(`{"id":"m%03d","subject":"%s%s"}`, n, mark, filler)})
		}
		return out
	}
	collect(t, id, "mails", big("old")...)
	at := "/v1/connections/consistent/streams/mails/export"
	var open []*http.Response
	another := func() *client {
		key := c.do("POST", "/v1/api-keys",
			object{"name": "exports", "mode": "live", "scopes": []string{"records:read"}}).want(201)
		return c.as(key.text("key"))
	}
	for i, who := range []*client{c, another(), another()} {
		for range 4 {
			res := must(who.send("GET", at, nil))
			defer res.Body.Close()
			open = append(open, res)
			if i == 2 && res.StatusCode != 429 {
				t.Errorf("a ninth export: %d", res.StatusCode)
			}
		}
		a := who.do("GET", at, nil).want(429, "rate_limited")
		if want := []string{"key", "key", "global"}[i]; a.header.Get("Retry-After") != "1" ||
			a.text("details", "scope") != want {
			t.Errorf("%v %s, want %s", a.header, a.body, want)
		}
	}
	open = open[:8]
	collect(t, id, "mails", big("new")...)
	for i, res := range open {
		if i > 0 { // gives its place back
			res.Body.Close()
			continue
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || bytes.Contains(body, []byte(`"new`)) || bytes.Count(body, []byte(`"old`)) != 200 ||
			!bytes.Contains(body, []byte(`{"end":true,"records":200,`)) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	}
	eventually(t, "a place for an export", func() bool {
		res := must(c.send("GET", at, nil))
		defer res.Body.Close()
		return res.StatusCode == 200
	})
}

// A failingView cannot be read after its first page.
type failingView struct {
	store.View
	pages int
}

func (v *failingView) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if v.pages++; v.pages > 2 { // the first asks for the version only
		return store.RecordPage{}, errors.New("disk is gone")
	}
	return v.View.Records(ctx, q)
}

type failingStore struct{ store.Store }

func (s failingStore) View(ctx context.Context) (store.View, error) {
	v, err := s.Store.View(ctx)
	return &failingView{View: v}, err
}

// An export that cannot go on breaks the connection; it never looks complete.
func TestExportBroken(t *testing.T) {
	c := served(t)
	id := connection(t, "broken", "live")
	var changes []change
	for n := range 5500 { // two pages
		changes = append(changes, change{key: fmt.Sprintf("m%04d", n), data: fmt.Sprintf(`{"id":"m%04d"}`, n)})
	}
	collect(t, id, "mails", changes...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := web.New(web.Options{Access: shared.d.Server.Access(), Hosts: []string{l.Addr().String()}})
	a := api.New(api.Options{Host: shared.d.Service, Store: failingStore{theStore()}, Access: app.Access(), Version: "1"})
	a.Register(app)
	served := make(chan error, 1)
	go func() { served <- app.Serve(l) }()
	defer func() {
		app.EndStreams(time.Minute)
		if err := errors.Join(app.Shutdown(time.Minute), <-served); err != nil {
			t.Error(err)
		}
	}()
	c.base = "http://" + l.Addr().String()
	for _, format := range []string{"ndjson", "csv&fields=id"} {
		res, err := c.send("GET", "/v1/connections/broken/streams/mails/export?format="+format, nil)
		if format != "ndjson" { // the columns are read first
			if err != nil || res.StatusCode != 500 {
				t.Errorf("%v %v", res, err)
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			continue // broken before the head was on its way
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || bytes.Contains(body, []byte(`"end":true`)) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	}
}
