package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// collectedBy is a connection that has a stream to grant.
func collectedBy(t *testing.T, id store.ConnectionID) {
	t.Helper()
	err := theStore().PutConnection(t.Context(), store.Connection{ID: id, CreatedAt: time.Now(), Manifest: json.RawMessage(
		`{"protocol_version":"0.1.0","connector_id":"https://example.org/x","version":"1.0.0","display_name":"X","streams":[
 {"name":"rows","semantics":"mutable_state","primary_key":["id"],"schema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theStore().DeleteConnection(context.WithoutCancel(t.Context()), id, true); err != nil {
			t.Log(err)
		}
	})
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"runs","arguments":{}}}`

func asked(token string) []option {
	return []option{header("Authorization", "Bearer "+token), header("Content-Type", "application/json"),
		header("Accept", "application/json, text/event-stream"), header("Mcp-Protocol-Version", "2025-11-25")}
}

// An assistant's token opens /mcp and nothing else, and nothing else opens /mcp.
func TestAssistants(t *testing.T) {
	c := served(t)
	collectedBy(t, "for-assistants")
	nobody := c.as("")
	own, _ := session(t, c.base)
	at := "/v1/assistants"
	grant := object{"name": "notes", "connections": []object{{"connectionId": "for-assistants"}}}
	c.do("POST", at, grant).want(403, "forbidden")
	c.do("GET", at, nil).want(403, "forbidden")
	nobody.do("POST", at, object{"name": "notes"}, own...).want(400, "validation_error")
	nobody.do("POST", at, object{"name": "notes", "connections": []object{{"connectionId": "none"}}},
		own...).want(400, "validation_error")
	made := nobody.do("POST", at, grant, own...).want(201)
	token := made.text("token")
	if !strings.HasPrefix(token, "sla_") || made.header.Get("Location") != at+"/notes" {
		t.Fatalf("%v %s", made.header, made.body)
	}
	nobody.do("POST", at, grant, own...).want(409, "conflict")
	for _, r := range table(t) {
		if r.Open {
			continue
		}
		var body any
		if writes(r) {
			body = "{}"
		}
		nobody.do(r.Method, filled(r), body, header("Authorization", "Bearer "+token)).want(401)
	}
	// to the login
	nobody.do("GET", "/ui/", nil, header("Authorization", "Bearer "+token), header("Accept", "application/json")).want(303)

	if a := nobody.do("POST", "/mcp", ping, asked(token)...).want(200); !strings.Contains(string(a.body),
		`"structuredContent":{"runs":`) {
		t.Errorf("%s", a.body)
	}
	nobody.do("POST", "/mcp", ping, asked(key(t, access.NewKey{Scopes: all}))...).want(401, "unauthenticated")
	nobody.do("POST", "/mcp", ping, own...).want(401, "unauthenticated")
	nobody.do("POST", "/mcp", ping, append(own, header("Sluice-Assistant", "notes"))...).want(401, "unauthenticated")
	nobody.do("POST", "/mcp", ping, append(asked(token), header("Origin", "https://evil.example"))...).want(403,
		"origin_not_allowed")
	nobody.do("POST", "/mcp", ping, append(asked(token), header("Sec-Fetch-Site", "cross-site"))...).want(403,
		"origin_not_allowed")
	nobody.do("POST", "/mcp", ping, append(asked(token), func(r *http.Request) { r.Host = "evil.example" })...).want(421,
		"host_not_allowed")
	nobody.do("GET", "/mcp", nil, asked(token)...).want(405, "method_not_allowed")
	nobody.do("DELETE", "/mcp", nil, asked(token)...).want(405, "method_not_allowed")
	nobody.do("POST", "/mcp", `"`+strings.Repeat("x", 1<<20)+`"`, asked(token)...).want(413)

	if a := nobody.do("GET", at, nil, own...).want(200); strings.Contains(string(a.body), "sla_") {
		t.Errorf("%s", a.body)
	}
	if a := nobody.do("GET", at+"/notes", nil, own...).want(200); a.text("status") != "active" {
		t.Errorf("%s", a.body)
	}
	nobody.do("GET", at+"/none", nil, own...).want(404, "not_found")
	if a := nobody.do("GET", at+"/notes/calls", nil,
		own...).want(200); !strings.Contains(string(a.body), `"tool":"runs"`) {
		t.Errorf("%s", a.body)
	}
	nobody.do("GET", at+"/none/calls", nil, own...).want(404, "not_found")
	nobody.do("POST", at+"/notes/calls/call_none:decide", object{"approve": true}, own...).want(404, "not_found")
	nobody.do("POST", at+"/notes:revoke", nil, own...).want(200)
	nobody.do("POST", "/mcp", ping, asked(token)...).want(401, "key_revoked")
}

// What is no call is refused, and costs neither the host nor the next call anything.
func TestAssistantGarbage(t *testing.T) {
	c := served(t)
	collectedBy(t, "for-garbage")
	nobody := c.as("")
	own, _ := session(t, c.base)
	token := nobody.do("POST", "/v1/assistants",
		object{"name": "garbage", "connections": []object{{"connectionId": "for-garbage"}}}, own...).want(201).text("token")
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":` + arguments + `}}`
	}
	most := 1<<20 - 200
	for name, body := range map[string]string{
		"nothing": " ", "no JSON": "{", "NUL": "\x00\xff", "another value": "7", "nothing in it": "{}", "two": ping + ping,
		"not UTF-8": call("{\"sql\":\"\xff\"}"), "deep arrays": strings.Repeat("[", most),
		"deep objects":   strings.Repeat(`{"a":`, most/5),
		"deep arguments": call(strings.Repeat("[", most/2-100) + strings.Repeat("]", most/2-100)),
		"a batch":        "[" + strings.Repeat(ping+",", 5000) + ping + "]",
		"members":        call("{" + strings.Repeat(`"a":1,`, most/6-100) + `"sql":1}`),
		"long SQL":       call(`{"sql":"` + strings.Repeat("(", most-200) + `"}`), "a number": call(`{"sql":1e999}`),
		"no arguments": call(`null`), "a list": call(`[]`), "an id": strings.Replace(ping, `"id":1`, `"id":{"a":[]}`, 1),
		"a long id":                strings.Replace(ping, `"id":1`, `"id":"`+strings.Repeat("x", most-500)+`"`, 1),
		"another method":           strings.Replace(ping, "tools/call", "sampling/createMessage", 1),
		"an answer":                `{"jsonrpc":"2.0","id":1,"result":{}}`,
		"a tool that there is not": strings.Replace(ping, `"runs"`, `"drop_everything"`, 1),
		"a cursor":                 call(`{"sql":"SELECT 1","cursor":"` + strings.Repeat("A", 100_000) + `"}`),
	} {
		res, err := nobody.send("POST", "/mcp", body, asked(token)...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		answer, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode >= 500 || len(answer) > 2<<20 ||
			res.StatusCode != http.StatusAccepted && !bytes.Contains(answer, []byte(`"jsonrpc":"2.0"`)) {
			t.Errorf("%s: %d, %d bytes, %v: %.300s", name, res.StatusCode, len(answer), err, answer)
		}
		nobody.do("POST", "/mcp", ping, asked(token)...).want(200)
	}
}

// A call that wants a yes waits for it, over HTTP too.
func TestAssistantAsks(t *testing.T) {
	c := served(t)
	collectedBy(t, "for-asking")
	nobody := c.as("")
	own, _ := session(t, c.base)
	token := nobody.do("POST", "/v1/assistants",
		object{"name": "asks", "ask": true, "connections": []object{{"connectionId": "for-asking"}}},
		own...).want(201).text("token")
	answered := make(chan string, 1)
	go func() {
		a, err := nobody.try("POST", "/mcp", ping, asked(token)...)
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- string(a.body)
	}()
	var calls struct {
		Data []struct{ CallID, Outcome string }
	}
	eventually(t, "a call waits", func() bool {
		a := nobody.do("GET", "/v1/assistants/asks/calls", nil, own...).want(200)
		return json.Unmarshal(a.body, &calls) == nil && len(calls.Data) == 1 && calls.Data[0].Outcome == "waiting"
	})
	nobody.do("POST", "/v1/assistants/asks/calls/"+calls.Data[0].CallID+":decide",
		object{"approve": true}, own...).want(204)
	if got := <-answered; !strings.Contains(got, `"structuredContent"`) {
		t.Error(got)
	}
}

// Clients that send a byte and no more, and such that read none of their answers, are more than
// an assistant has places for calls, and hold up neither it nor another.
func TestSlowAssistants(t *testing.T) {
	c := served(t)
	collectedBy(t, "for-slow")
	nobody := c.as("")
	own, _ := session(t, c.base)
	add := func(name string) string {
		return nobody.do("POST", "/v1/assistants",
			object{"name": name, "connections": []object{{"connectionId": "for-slow"}}}, own...).want(201).text("token")
	}
	slow, other := add("slow"), add("other")
	base, err := url.Parse(c.base)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Replace(ping, `"method":"tools/call","params":{"name":"runs","arguments":{}}`,
		`"method":"tools/list"`, 1)
	for i := range 24 {
		r, err := http.NewRequestWithContext(t.Context(), "POST", c.base+"/mcp", strings.NewReader(list))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range asked(slow) {
			o(r)
		}
		var whole bytes.Buffer
		if err := r.Write(&whole); err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", base.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text := whole.Bytes()
		if i%2 == 0 {
			text = text[:len(text)-len(list)+1]
		} else {
			text = bytes.Repeat(text, 100) // of which the answers are more than sockets hold
			if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil { // the host reads no further: so be it
				t.Fatal(err)
			}
		}
		_, _ = conn.Write(text)
	}
	for _, token := range []string{slow, other} {
		for range 20 {
			nobody.do("POST", "/mcp", ping, asked(token)...).want(200)
		}
	}
}
