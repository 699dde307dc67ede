//go:build unix

package cluster

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A call of an assistant that waits at one host is listed and decided at another one, and its entry in the audit log
// is of the host that has the call.
func TestAssistantAsksAnywhere(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	a.connect("steps", step{"do": "emit", "n": 1})
	terms := host.NewAssistant{Name: "notes", AssistantTerms: host.AssistantTerms{Ask: true,
		Connections: []host.AssistantGrant{{ConnectionID: "steps"}}}}
	a.do("POST", "/v1/assistants", terms, nil)
	at := client.Socket(filepath.Join(a.dir, daemon.SocketName))
	defer at.Close()
	for _, yes := range []bool{true, false} {
		answered := make(chan string, 1)
		go func() {
			_, text, err := at.MCP(soon(t), http.Header{web.HeaderAssistant: {"notes"}, "Content-Type": {"application/json"},
				"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-06-18"}},
				[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"data","arguments":{}}}`))
			if err != nil {
				t.Error(err)
			}
			answered <- string(text)
		}()
		call := ""
		until(t, "the call waits at the other host", func() bool {
			select {
			case text := <-answered:
				t.Fatalf("the call did not wait: %s", text)
			default:
			}
			var page struct{ Data []host.AssistantCall }
			b.do("GET", "/v1/assistants/notes/calls?limit=1", nil, &page)
			if len(page.Data) == 0 || page.Data[0].Outcome != "waiting" {
				return false
			}
			call = page.Data[0].CallID
			return true
		})
		b.do("POST", "/v1/assistants/notes/calls/"+call+":decide", map[string]bool{"approve": yes}, nil)
		if text := <-answered; strings.Contains(text, "The owner said no") == yes {
			t.Errorf("yes is %t, and the answer %s", yes, text)
		}
	}
	for _, action := range []string{"assistant.approved", "assistant.denied"} {
		until(t, action+" is in the audit log", func() bool {
			targets, hosts := b.audited(action)
			return len(targets) == 1 && targets[0] == "notes" && hosts[0] == a.id
		})
	}
}
