package served

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A Client speaks the API. It may be used concurrently.
type Client struct {
	Base string // http://host:port
	Key  string // "" for none
	HTTP *http.Client
}

// Socket returns the owner's client at the local socket.
func Socket(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{Base: "http://sluice",
		HTTP: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 64}}}
}

// A Failure is an answer other than a success.
type Failure struct {
	Status  int
	Code    string         `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%d %s: %s %v", f.Status, f.Code, f.Message, f.Details)
}

// Do sends a request with a JSON body, if it is not nil, and decodes the answer into
// out, if that is not nil. headers are names and values in turn. The error may be a
// *Failure.
func (c *Client) Do(ctx context.Context, method, path string, body, out any,
	headers ...string) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	return c.send(ctx, method, path, content, out, headers...)
}

func (c *Client) send(ctx context.Context, method, path string, content io.Reader, out any,
	headers ...string) (*http.Response, error) {
	res, err := c.open(ctx, method, path, content, headers...)
	if err != nil {
		return res, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return res, err
	}
	if res.StatusCode >= 300 {
		f := &Failure{Status: res.StatusCode, Message: string(text)}
		_ = json.Unmarshal(text, f) // an answer that is no JSON stands as it is
		return res, f
	}
	if out == nil || len(text) == 0 {
		return res, nil
	}
	return res, json.Unmarshal(text, out)
}

func (c *Client) open(ctx context.Context, method, path string, content io.Reader,
	headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, content)
	if err != nil {
		return nil, err
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return c.HTTP.Do(req)
}

// Install uploads a module and returns the connector.
func (c *Client) Install(ctx context.Context, wasm []byte) (host.Connector, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("module", "module.wasm")
	if err == nil {
		_, err = part.Write(wasm)
	}
	if err == nil {
		err = form.Close()
	}
	var out host.Connector
	if err == nil {
		_, err = c.send(ctx, "POST", "/v1/connectors", &body, &out, "Content-Type", form.FormDataContentType())
	}
	return out, err
}

// Connect makes a connection that may ask and collect everything.
func (c *Client) Connect(ctx context.Context, connector string, id store.ConnectionID, settings any) error {
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	at, yes := "/v1/connections/"+string(id), true
	if _, err = c.Do(ctx, "POST", "/v1/connections",
		host.NewConnection{ConnectorName: connector, ConnectionID: string(id), Settings: text}, nil); err != nil {
		return err
	}
	if _, err = c.Do(ctx, "PUT", at+"/bindings", host.Bindings{Interactive: &yes}, nil); err != nil {
		return err
	}
	_, err = c.Do(ctx, "POST", at+"/grants", map[string]any{"scope": nil, "accessMode": "continuous"}, nil)
	return err
}

// Start starts a run, once per key unless that is "".
func (c *Client) Start(ctx context.Context, workflow, key string) (store.RunID, error) {
	var out struct{ RunID store.RunID }
	var headers []string
	if key != "" {
		headers = []string{"Idempotency-Key", key}
	}
	_, err := c.Do(ctx, "POST", "/v1/runs", map[string]any{"workflowId": workflow}, &out, headers...)
	return out.RunID, err
}

// Snapshot is the state of a run.
func (c *Client) Snapshot(ctx context.Context, id store.RunID) (timeline.Snapshot, error) {
	var s timeline.Snapshot
	_, err := c.Do(ctx, "GET", "/v1/runs/"+string(id), nil, &s)
	return s, err
}

// Wait polls until right accepts the snapshot of a run, and returns it.
func (c *Client) Wait(ctx context.Context, id store.RunID,
	right func(timeline.Snapshot) bool) (timeline.Snapshot, error) {
	after := ""
	for {
		s, err := c.Snapshot(ctx, id)
		if err != nil || right(s) {
			return s, err
		}
		var page struct {
			Events []struct{ Sequence uint64 }
		}
		if _, err := c.Do(ctx, "GET", "/v1/runs/"+string(id)+"/events/poll?timeout=1"+after, nil, &page); err != nil {
			return s, err
		}
		if n := len(page.Events); n > 0 {
			after = fmt.Sprintf("&lastSequence=%d", page.Events[n-1].Sequence)
		}
		if ctx.Err() != nil {
			return s, fmt.Errorf("run %s stands at %s: %w", id, s.Status, ctx.Err())
		}
	}
}

// Over reports whether a run has ended, for Wait.
func Over(s timeline.Snapshot) bool { return s.Status.Terminal() }

// Asks reports whether a run has an open question, for Wait.
func Asks(s timeline.Snapshot) bool { return s.Interrupt != nil || s.Status.Terminal() }

// Answer resolves the question that a snapshot shows.
func (c *Client) Answer(ctx context.Context, s timeline.Snapshot, value any) error {
	if s.Interrupt == nil {
		return fmt.Errorf("run %s asks nothing", s.RunID)
	}
	_, err := c.Do(ctx, "POST", "/v1/runs/"+string(s.RunID)+"/interrupts/"+s.Interrupt.NodeID,
		map[string]any{"resumeValue": value}, nil)
	return err
}

// Cancel cancels a run.
func (c *Client) Cancel(ctx context.Context, id store.RunID) (status string, err error) {
	var out struct{ Status string }
	_, err = c.Do(ctx, "POST", "/v1/runs/"+string(id)+"/cancel", map[string]any{}, &out)
	return out.Status, err
}

// Soon returns a context with the time limit of what a test waits for.
func Soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 30*time.Second)
}
