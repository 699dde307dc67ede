package client

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"

	"github.com/sluicehost/sluice/host"
)

// Connectors lists the installed ones (A173).
func (c *Client) Connectors(ctx context.Context) ([]host.Connector, error) {
	return all[host.Connector](ctx, c, at("connectors"), nil)
}

// Connector is one of them (A174).
func (c *Client) Connector(ctx context.Context, name string) (out host.Connector, err error) {
	return out, c.get(ctx, at("connectors", name), nil, &out)
}

// Inspect looks again at an installed module, by its digest (A172).
func (c *Client) Inspect(ctx context.Context, digest string) (out host.Inspection, err error) {
	body := map[string]any{"source": map[string]string{"type": "digest", "digest": digest}}
	return out, c.call(ctx, http.MethodPost, at("connectors")+":inspect", nil, body, &out)
}

// InstallConnector uploads a module (A169).
func (c *Client) InstallConnector(ctx context.Context, q host.InstallConnector) (out host.Connector, err error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	parts := []struct{ name, content string }{
		{"module", string(q.Module)}, {"manifest", string(q.Manifest)}, {"signature", string(q.Signature)}, {"expectedDigest", q.ExpectedDigest},
		{"force", yes(q.Force)}, {"conformance", yes(q.Conformance)},
	}
	for _, p := range parts {
		if p.content == "" {
			continue
		}
		if err := w.WriteField(p.name, p.content); err != nil {
			return out, fmt.Errorf("make upload: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return out, fmt.Errorf("make upload: %w", err)
	}
	header := http.Header{"Content-Type": {w.FormDataContentType()}, "Accept": {"application/json"}}
	return out, c.exchange(ctx, http.MethodPost, at("connectors"), nil, header, &body, &out)
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// Uninstall takes a connector off the list (A177).
func (c *Client) Uninstall(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, at("connectors", name), nil, nil, nil)
}
