// Command bearer makes the requests of its settings, with handles of its secrets
// where they say so, and records what came of each.
package main

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

func main() { guest.Main(guest.Connector{Collect: collect}) }

type step struct {
	URL    string `json:"url"`
	Method string `json:"method"`
	Auth   string `json:"auth"` // of Authorization; <token> and <key> are handles
	Body   string `json:"body"`
	Type   string `json:"type"`
	Wait   int    `json:"wait_ms"` // before it
}

func collect(_ context.Context, run *guest.Run) error {
	var s struct {
		Steps []step `json:"steps"`
	}
	if err := run.Config(&s); err != nil {
		return err
	}
	handles := strings.NewReplacer("<token>", run.Secret("token"), "<key>", run.Secret("key"))
	for i, st := range s.Steps {
		time.Sleep(time.Duration(st.Wait) * time.Millisecond)
		id := strconv.Itoa(i)
		status, body, err := send(run, st, handles)
		if err != nil {
			body = err.Error()
		}
		record := map[string]any{"id": id, "status": status, "body": body, "token": run.Secret("token"), "key": run.Secret("key")}
		if err := run.Emit("answers", id, record); err != nil {
			return err
		}
	}
	return nil
}

func send(run *guest.Run, st step, handles *strings.Replacer) (int, string, error) {
	q := guest.Request{Method: st.Method, URL: handles.Replace(st.URL), Body: []byte(handles.Replace(st.Body))}
	for name, value := range map[string]string{"Authorization": handles.Replace(st.Auth), "Content-Type": st.Type} {
		if value != "" {
			q.Header = append(q.Header, [2]string{name, value})
		}
	}
	resp, err := run.Fetch(q)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status, string(body), err
}
