package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
)

// TestEndless: statements that never end, through each door, keep nobody else waiting, and end
// when whoever asked has gone: as many as these would otherwise take minutes.
func TestEndless(t *testing.T) {
	const (
		endless = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n`
		quick   = `SELECT 4711`
		many    = 20
	)
	c, nobody := served(t), served(t).as("")
	collectedBy(t, "endless")
	own, _ := session(t, c.base)
	token := nobody.do("POST", "/v1/assistants",
		object{"name": "endless", "connections": []object{{"connectionId": "endless"}}}, own...).want(201).text("token")
	other := nobody.as(key(t, access.NewKey{Scopes: all}))
	for door, ask := range map[string]func(sql string, within option) (*http.Response, error){
		"api": func(sql string, within option) (*http.Response, error) {
			return c.send("POST", "/v1/query", object{"sql": sql}, within)
		},
		"page": func(sql string, within option) (*http.Response, error) {
			return nobody.send("POST", "/ui/data/sql", object{"sql": []string{sql}}, append(own[:len(own):len(own)], within)...)
		},
		"mcp": func(sql string, within option) (*http.Response, error) {
			call, _ := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
				"params": object{"name": "query", "arguments": object{"sql": sql}}})
			return nobody.send("POST", "/mcp", call, append(asked(token), within)...)
		},
	} {
		ctx, leave := context.WithCancel(t.Context())
		var sent, asking sync.WaitGroup
		var answered atomic.Int32
		sent.Add(many)
		for range many {
			asking.Go(func() {
				written := sync.OnceFunc(sent.Done)
				res, err := ask(endless, func(r *http.Request) {
					*r = *r.WithContext(httptrace.WithClientTrace(ctx,
						&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written() }}))
				})
				if written(); err == nil {
					answered.Add(1)
					_ = res.Body.Close()
				}
			})
		}
		sent.Wait()
		other.do("POST", "/v1/query", object{"sql": quick}).want(200)
		if n := answered.Load(); n > 0 {
			t.Errorf("%s: another waited until %d of the endless statements were over", door, n)
		}
		leave()
		asking.Wait()
		soon, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		res, err := ask(quick, func(r *http.Request) { *r = *r.WithContext(soon) })
		if err != nil {
			t.Errorf("%s: statements of those who have gone go on: %v", door, err)
		} else if text := read(t, res); !strings.Contains(text, "4711") {
			t.Errorf("%s: %s", door, text)
		}
		stop()
	}
}

func read(t *testing.T, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
