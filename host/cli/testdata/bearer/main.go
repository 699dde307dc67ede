// Command bearer makes the requests of its settings, with handles of its secrets
// where they say so, and records what came of each.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
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

func collect(ctx context.Context, run *guest.Run) error {
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
		status, body, err := send(ctx, run, st, handles)
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

func send(ctx context.Context, run *guest.Run, st step, handles *strings.Replacer) (int, string, error) {
	method := st.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, handles.Replace(st.URL), strings.NewReader(handles.Replace(st.Body)))
	if err != nil {
		return 0, "", fmt.Errorf("step: %w", err)
	}
	if st.Auth != "" {
		req.Header.Set("Authorization", handles.Replace(st.Auth))
	}
	if st.Type != "" {
		req.Header.Set("Content-Type", st.Type)
	}
	resp, err := guesthttp.Client(run).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
