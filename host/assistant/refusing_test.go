package assistant_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
)

// post sends one message as it is, and returns status, type and answer.
func (w *world) post(message string, header ...string) (status int, kind string, answer []byte) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.server.URL, strings.NewReader(message))
	w.must(err)
	for name, value := range map[string]string{"X-Assistant": "notes", "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25"} {
		r.Header.Set(name, value)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	w.must(err)
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	w.must(err)
	return res.StatusCode, res.Header.Get("Content-Type"), answer
}

// What is no request is refused with an error of JSON-RPC: short, and with the id where the
// message has one.
func TestMalformed(t *testing.T) {
	w := newWorld(t)
	w.add("notes")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	long := strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		message string
		code    int
		id      string
		header  []string
	}{
		"nothing": {"", -32700, "null", nil},
		"no JSON": {"{", -32700, "null", nil},
		"bytes":   {"\x00\xff<script>", -32700, "null", nil},
		"two":     {ping + ping, -32700, "null", nil},
		"deep":    {strings.Repeat("[", 100_000), -32700, "null", nil},
		"too long": {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 1<<20) + `"}`,
			-32700, "null", nil},
		"another value":        {"7", -32600, "null", nil},
		"no members":           {"{}", -32600, "null", nil},
		"a batch":              {"[" + ping + "," + ping + "]", -32600, "null", nil},
		"no version":           {`{"id":"a","method":"ping"}`, -32600, `"a"`, nil},
		"an object as id":      {`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, -32600, "null", nil},
		"a long id":            {`{"id":"` + long + `","method":"ping"}`, -32600, "null", nil},
		"no id":                {`{"jsonrpc":"2.0","method":"tools/call","params":{}}`, -32600, "null", nil},
		"another method":       {`{"jsonrpc":"2.0","id":7,"method":"` + long + `"}`, -32601, "7", nil},
		"another content type": {ping, -32600, "1", []string{"Content-Type", "text/plain"}},
		"a wrong version":      {ping, -32600, "1", []string{"Mcp-Protocol-Version", "1999-01-01"}},
		"no accept":            {ping, -32600, "1", []string{"Accept", "text/html"}},
	} {
		status, kind, answer := w.post(c.message, c.header...)
		var got struct {
			JSONRPC string
			ID      json.RawMessage
			Error   struct {
				Code    int
				Message string
			}
			Result json.RawMessage
		}
		err := json.Unmarshal(answer, &got)
		if err != nil || status < 400 || status >= 500 || kind != "application/json" || len(answer) > 1000 ||
			got.JSONRPC != "2.0" || string(got.ID) != c.id || got.Error.Code != c.code ||
			got.Error.Message == "" || got.Result != nil {
			t.Errorf("%s: %d %s, want %d with the id %s: %.300s (%v)", name, status, kind, c.code, c.id, answer, err)
		}
	}
	if status, _, answer := w.post(ping); status != http.StatusOK || !strings.Contains(string(answer), `"result":`) {
		t.Errorf("%d %s", status, answer)
	}
}

// Of one assistant eight calls work at once; more wait, and none is lost.
func TestCallsAtOnce(t *testing.T) {
	const calls, atOnce = 20, 8
	w := newWorld(t)
	w.add("notes", func(q *host.NewAssistant) { q.Run = true })
	in, leave := make(chan struct{}, calls), make(chan struct{})
	var mu sync.Mutex
	working, most := 0, 0
	w.starting = func() {
		mu.Lock()
		working++
		most = max(most, working)
		mu.Unlock()
		in <- struct{}{}
		<-leave
		mu.Lock()
		working--
		mu.Unlock()
	}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			_, _, answer := w.post(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_connection","arguments":{"connection":"mail"}}}`)
			if !strings.Contains(string(answer), `"result":`) || strings.Contains(string(answer), `"isError":true`) {
				t.Errorf("%s", answer)
			}
		})
	}
	for range atOnce {
		<-in
	}
	for range calls - atOnce { // whoever leaves lets one in
		leave <- struct{}{}
		<-in
	}
	close(leave)
	all.Wait()
	if most != atOnce {
		t.Errorf("%d calls worked at once, want %d", most, atOnce)
	}
}
