package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/api/client"
)

// TestMessageTooLong: a message that is too long is answered by its id, wherever that stands, and the session goes on.
func TestMessageTooLong(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}))
	defer host.Close()
	c, err := client.URL(host.URL, "token")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	much := strings.Repeat(`say \"no\", {"id":7}`, 150_000) // 3 MB
	much = strings.ReplaceAll(much, `"id":7`, `\"id\":7`)
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"` + much + `"}}`,
		`{"method":"tools/call","params":{"id":8,"x":["` + much + `",{"id":9}]},"jsonrpc":"2.0","id" : "a,}\"" }`,
		`{"method":"tools/call","params":{"x":"` + much + `"}}`,
		`{"method":"x","id":{"id":3},"params":"` + much + `"}`,
		`{"method":"x","id":"` + strings.Repeat("i", 300) + `","params":"` + much + `"}`,
		`[{"id":4,"params":"` + much + `"}]`,
		much,
		`{"jsonrpc":"2.0","id":5,"method":"tools/list","params":7}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":10,"method":"x","params":{"x":"` + much, // the end of the input, too
	}, "\n")
	var out bytes.Buffer
	b := &bridge{client: c, header: http.Header{}, in: strings.NewReader(in), out: &out}
	if err := b.run(t.Context()); err != nil {
		t.Errorf("the session ended with %v", err)
	}
	got := map[string]int{}
	for line := range strings.Lines(out.String()) {
		got[strings.TrimSpace(line)]++
	}
	tooLong := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id +
			`,"error":{"code":-32600,"message":"the message is longer than 1048576 bytes"}}`
	}
	for want, n := range map[string]int{
		tooLong(`1`): 1, tooLong(`"a,}\""`): 1, tooLong(`10`): 1, tooLong(`null`): 5,
		`{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"that is no JSON-RPC message"}}`: 1,
		`{"jsonrpc":"2.0","id":6,"result":{}}`:                                                     1,
	} {
		if got[want] != n {
			t.Errorf("%d times %s", got[want], want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// endlessReader has a message without an end.
type endlessReader struct{ left int }

func (r *endlessReader) Read(b []byte) (int, error) {
	if r.left -= len(b); r.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	for i := range b {
		b[i] = ','
	}
	return len(b), nil
}

// TestMessageWithoutEnd: a line of any length takes no more memory than the longest message.
func TestMessageWithoutEnd(t *testing.T) {
	r := bufio.NewReaderSize(&endlessReader{left: 64 << 20}, 64<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := readMessage(r); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 16<<20 {
		t.Errorf("64 MB took %d MB", bytes>>20)
	}
	if _, _, err := readMessage(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
