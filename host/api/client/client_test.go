package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/store"
)

// serve answers as h says; the client has a key.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.URL(s.URL, "slk_live_test_key")
	if err != nil {
		t.Fatal(err)
	}
	c.SetWait(time.Millisecond)
	return c
}

// A key goes over plain HTTP to this machine alone, and with no redirect.
func TestURL(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://sluice.example": true, "https://sluice.example/": true, "http://127.0.0.1:7373": true,
		"http://[::1]:1": true, "http://localhost:7373": true, "http://sluice-abc.localhost:7373": true,
		"http://sluice.example": false, "http://10.0.0.1": false, "http://127.0.0.1.example": false, "ftp://localhost": false,
		"https://user@sluice.example": false, "https://sluice.example/v1": false, "https://sluice.example?a=b": false,
		"sluice.example": false, "": false,
	} {
		if _, err := client.URL(address, "key"); (err == nil) != ok || err != nil && !errors.Is(err, client.ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/connectors" {
			t.Errorf("the redirect was followed to %s", r.URL.Path)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	var e *client.Error
	if _, err := c.Connectors(context.Background()); !errors.As(err, &e) || e.Status != http.StatusFound {
		t.Errorf("a redirect: %v", err)
	}
}

// Errors have the host's code and message; what is no envelope is told as such.
func TestErrors(t *testing.T) {
	body, status := "", 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer slk_live_test_key" {
			t.Errorf("Authorization: %q", got)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
	for _, test := range []struct {
		status             int
		body, code, detail string
	}{
		{409, `{"error":"connection_not_ready","message":"No.","details":{"code":"grant_revoked"}}`,
			"connection_not_ready", "grant_revoked"},
		{404, `{"error":"not_found","message":"No."}`, "not_found", "not_found"},
		{502, `<html>Bad gateway</html>`, "http_error", "http_error"},
		{500, ``, "http_error", "http_error"},
	} {
		body, status = test.body, test.status
		var e *client.Error
		if _, err := c.Run(context.Background(), "run_1"); !errors.As(err, &e) || e.Status != test.status ||
			e.Code != test.code || e.Detail() != test.detail || e.Message == "" {
			t.Errorf("%d %s: %+v", test.status, test.body, err)
		}
	}
	body, status = `{"runId":`, 200
	if _, err := c.Run(context.Background(), "run_1"); err == nil {
		t.Error("an answer that is cut off was taken")
	}
}

// Ids are one segment of a path, whatever they hold.
func TestPaths(t *testing.T) {
	var paths []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.EscapedPath())
		io.WriteString(w, `{}`)
	})
	if _, err := c.Connection(context.Background(), "a/b?c#d"); err != nil {
		t.Fatal(err)
	}
	for _, typed := range []string{"", ".", ".."} {
		if _, err := c.Connection(context.Background(), store.ConnectionID(typed)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("connection %q: %v", typed, err)
		}
		if _, err := c.Run(context.Background(), store.RunID(typed)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("run %q: %v", typed, err)
		}
		if _, err := c.TestWebhook(context.Background(), typed); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("webhook %q: %v", typed, err)
		}
	}
	if err := c.PauseRun(context.Background(), "run_1", "", ""); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/v1/connections/a%2Fb%3Fc%23d", "/v1/runs/run_1:pause"}; !slices.Equal(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
}

// Cursors are the host's: calls are read page by page, up to as many as are wanted.
func TestAssistantCalls(t *testing.T) {
	next := map[string]string{"": "WX-d4Fa", "WX-d4Fa": "_CqKG9tn", "_CqKG9tn": ""}
	number := 9
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		after, known := next[r.URL.Query().Get("cursor")]
		if !known {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"data":[{"number":%d},{"number":%d},{"number":%d}],"nextCursor":%q}`, number, number-1, number-2, after)
		number -= 3
	})
	for _, test := range []struct {
		before uint64
		limit  int
		want   string
	}{{0, 100, "[9 8 7 6 5 4 3 2 1]"}, {0, 4, "[9 8 7 6]"}, {6, 2, "[5 4]"}} {
		number = 9
		calls, err := c.AssistantCalls(context.Background(), "notes", test.before, test.limit)
		var got []uint64
		for _, call := range calls {
			got = append(got, call.Number)
		}
		if fmt.Sprint(got) != test.want || err != nil {
			t.Errorf("before %d, %d: %v %v", test.before, test.limit, got, err)
		}
	}
}

func frame(id int, typ string) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"sequence\":%d}\n\n", id, typ, id)
}

// A stream that breaks is gone on with where it was: nothing twice, nothing missed,
// and the terminal event ends it.
func TestFollow(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			io.WriteString(w, `{"runId":"run_1","status":"running"}`)
			return
		}
		asked = append(asked, r.Header.Get("Last-Event-ID")+" "+r.URL.Query().Get("streamMode"))
		io.WriteString(w, "retry: 2000\n:hello\n\n")
		switch len(asked) {
		case 1:
			io.WriteString(w, frame(0, "run.started")+frame(1, "node.started")+"id: 2\nevent: lost") // no end
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			io.WriteString(w, frame(2, "node.completed")+":keepalive\n\n"+frame(3, "run.completed")+frame(4, "after.the.end"))
		}
	})
	var got []string
	err := c.Follow(context.Background(), "run_1", "debug", nil, func(f client.Frame) error {
		got = append(got, f.ID+" "+f.Event)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"0 run.started", "1 node.started", "2 node.completed",
		"3 run.completed"}; !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
	if want := []string{" debug", "1 debug", "1 debug"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// A stream without a terminal frame, such as messages, ends once the run was over
// before it was opened.
func TestFollowSilent(t *testing.T) {
	opened := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			opened++
			return
		}
		io.WriteString(w, `{"runId":"run_1","status":"completed"}`)
	})
	if err := c.Follow(context.Background(), "run_1", "messages", nil,
		func(client.Frame) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if opened != 2 {
		t.Errorf("opened %d times, want 2", opened)
	}
}

// What the host refuses is not tried again; what a frame's taker says ends it.
func TestFollowRefused(t *testing.T) {
	calls := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.WriteHeader(http.StatusGone)
		io.WriteString(w, `{"error":"events_expired","message":"Gone."}`)
	})
	var e *client.Error
	if err := c.Follow(context.Background(), "run_1", "", nil, nil); !errors.As(err, &e) ||
		e.Code != "events_expired" || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	c = serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, frame(0, "run.started")+frame(1, "x")) })
	enough, frames := errors.New("enough"), 0
	err := c.Follow(context.Background(), "run_1", "", nil, func(client.Frame) error { frames++; return enough })
	if !errors.Is(err, enough) || frames != 1 {
		t.Errorf("%v after %d frames", err, frames)
	}
}

// A frame is bounded, in one line and in many.
func TestFrameBound(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	for name, long := range map[string]string{"one line": "data: " + strings.Repeat("x", client.MaxFrame+1),
		"many": strings.Repeat(line, client.MaxFrame>>20+1)} {
		calls := 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/events") {
				io.WriteString(w, `{"runId":"run_1","status":"completed"}`)
				return
			}
			if calls++; calls == 1 {
				io.WriteString(w, long+"\n\n")
			}
		})
		err := c.Follow(context.Background(), "run_1", "", nil, func(f client.Frame) error {
			t.Errorf("%s: a frame of %d bytes was taken", name, len(f.Data))
			return nil
		})
		if err == nil || calls != 1 {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
	}
}

// readExport reads all of an export.
func readExport(c *client.Client) error {
	x := c.Exporter("", nil)
	defer x.Close()
	for q := (store.RecordQuery{Connection: "c", Stream: "s", Limit: 1}); ; {
		page, err := x.Records(context.Background(), q)
		if err != nil || !page.More {
			return err
		}
		q.After = page.After
	}
}

// An export that breaks off is told from one that ended.
func TestExport(t *testing.T) {
	body := ""
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
	record := `{"stream":"s","key":"k","data":{},"emittedAt":"2026-01-01T00:00:00Z","ingestedAt":"2026-01-01T00:00:00Z","version":1,"runId":"run_1"}` + "\n"
	for text, whole := range map[string]bool{
		record + `{"end":true,"records":1}` + "\n": true, `{"end":true,"records":0}` + "\n": true,
		record: false, record + `{"end":true,"records":2}` + "\n": false, "": false, "nonsense\n": false,
	} {
		body = text
		if err := readExport(c); (err == nil) != whole {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A record comes out of its line as it is stored, however its texts are spelled.
func TestExportedRecords(t *testing.T) {
	const at, run = `,"emittedAt":"2026-01-01T00:00:00.250Z","ingestedAt":"2026-01-02T00:00:00.000Z","version":`,
		`,"runId":"run_1"`
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("changesSince"))
		if !strings.HasSuffix(r.URL.Path, "/export") {
			io.WriteString(w, `{"data":[],"nextCursor":null,"nextChangesSince":"9-era"}`)
			return
		}
		io.WriteString(w, `{"connectionId":"c","stream":"s","key":"a\"\u00e4","data":{"x":[1,{"y":"}"}]}`+at+`7`+run+"}\n"+
			`{"connectionId":"c","stream":"s","key":["a","b"],"data":{"x":"`+strings.Repeat("long", 100_000)+
			`"}`+at+`8`+run+"}\n"+
			`{"connectionId":"c","stream":"s","key":"gone"`+at+`9`+run+`,"deleted":true,"deletedAt":"2026-01-02T00:00:00.000Z"}`+
			"\n"+`{"end":true,"records":3}`+"\n")
	})
	x := c.Exporter("", nil)
	defer x.Close()
	page, err := x.Records(t.Context(), store.RecordQuery{Connection: "c", Stream: "s", After: 6, Deleted: true, Limit: 2})
	if err != nil || !page.More || page.After != 8 {
		t.Fatalf("%+v %v", page, err)
	}
	rest, err := x.Records(t.Context(), store.RecordQuery{Connection: "c", Stream: "s", After: 8, Deleted: true, Limit: 2})
	if err != nil || rest.More {
		t.Fatalf("%+v %v", rest, err)
	}
	all := append(page.Records, rest.Records...)
	if len(all) != 3 || len(asked) != 2 || asked[1] != "6-era" {
		t.Fatalf("%d records, asked for %q", len(all), asked)
	}
	emitted, ingested := time.Date(2026, 1, 1, 0, 0, 0, 250e6, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for i, want := range []store.Record{{Key: `a"ä`, Data: []byte(`{"x":[1,{"y":"}"}]}`)},
		{Key: `["a","b"]`, Compound: true, Data: all[1].Data}, {Key: "gone", Deleted: true}} {
		want.Stream, want.RunID, want.Version, want.EmittedAt, want.IngestedAt = "s", "run_1", uint64(7+i), emitted, ingested
		if got := all[i]; !got.EmittedAt.Equal(want.EmittedAt) || !got.IngestedAt.Equal(want.IngestedAt) {
			t.Errorf("times of %+v", got)
		} else if got.EmittedAt, got.IngestedAt = want.EmittedAt, want.IngestedAt; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if len(all[1].Data) != 400_008 {
		t.Errorf("a long record has %d bytes", len(all[1].Data))
	}
}

// The socket sends no credential; one that nobody answers is no host.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	c := client.Socket(path)
	if alive, err := c.Alive(context.Background()); alive || err != nil {
		t.Errorf("a host without a socket answers: %v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a credential on the socket")
		}
		io.WriteString(w, `{"status":"ok"}`)
	}), ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	if alive, err := c.Alive(context.Background()); !alive || err != nil || !c.Local() {
		t.Errorf("the host at the socket does not answer: %v", err)
	}
	s.Close()
	var gone *client.UnreachableError
	if _, err := c.System(context.Background()); !errors.As(err, &gone) {
		t.Errorf("a host that is gone: %v", err)
	}
}

// A host that listens and does not come to answer is busy, and not absent: nobody may
// take its data directory for free.
func TestSocketOfBusyHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := client.Hasty(client.Socket(path))
	var busy *client.UnreachableError
	if alive, err := c.Alive(t.Context()); alive || !errors.As(err, &busy) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a host that is busy: %v, %v", alive, err)
	}
	l.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if alive, err := c.Alive(t.Context()); alive || err != nil {
		t.Errorf("a socket that a host left: %v, %v", alive, err)
	}
}
