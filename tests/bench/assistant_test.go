//go:build unix

package bench

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/assistants"
)

// BenchmarkAssistant measures calls of an assistant over HTTP, one after the other, beside a
// handler of net/http that answers with as many bytes. Goals: p50 of get_record 2 ms, of a
// query of 100 rows 5 ms.
func BenchmarkAssistant(b *testing.B) {
	url, token := assistants.Open(b, 20_000)
	get := func(i int) string {
		return fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"get_record","arguments":{"connection":"mail","stream":"messages","key":"k%d"}}}`, i, i*2%20_000)
	}
	query := func(i int) string {
		return fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"query","arguments":{"sql":"SELECT id, subject FROM mail.messages WHERE _key > 'k%d' LIMIT 100"}}}`, i, 1000+i%1000)
	}
	answer := ask(b, url, token, get(0))
	if rows := bytes.Count(ask(b, url, token, query(0)), []byte("order ")); rows < 100 { // it fills the copy
		b.Fatalf("a query of 100 rows is answered with %d", rows)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	plain := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer)
		})}
	go func() { _ = plain.Serve(l) }()
	defer plain.Close()
	for b.Loop() {
		for name, c := range map[string]struct {
			url   string
			calls int
			text  func(int) string
		}{
			"get_record": {url, 500, get}, "query-100": {url, 300, query}, "plain": {"http://" + l.Addr().String(), 2000, get},
		} {
			all := make([]time.Duration, c.calls)
			for i := range all {
				text, began := c.text(i), time.Now()
				ask(b, c.url, token, text)
				all[i] = time.Since(began)
			}
			percentiles(b, name, all)
		}
	}
}

func ask(b *testing.B, url, token, text string) []byte {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), "POST", url, bytes.NewReader([]byte(text)))
	if err != nil {
		b.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-11-25"}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || bytes.Contains(got, []byte(`"isError":true`)) {
		b.Fatalf("%v %d %s", err, res.StatusCode, got)
	}
	return got
}
