package client

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/sluicehost/sluice/host"
)

// Connectors lists the installed ones.
func (c connectorClient) Connectors(ctx context.Context) ([]host.Connector, error) {
	return all[host.Connector](ctx, c.transport, at("connectors"), nil)
}

// Connector returns one of them.
func (c connectorClient) Connector(ctx context.Context, name string) (out host.Connector, err error) {
	return out, c.get(ctx, at("connectors", name), nil, &out)
}

// InspectConnector checks a module without storing it.
func (c connectorClient) InspectConnector(ctx context.Context,
	q host.InstallConnector) (out host.Inspection, err error) {
	_, err = c.submit(ctx, at("connectors")+":inspect", q, &out)
	return out, err
}

// InstallConnector installs a module; created is false if it was already installed.
func (c connectorClient) InstallConnector(ctx context.Context,
	q host.InstallConnector) (out host.Connector, created bool, err error) {
	created, err = c.submit(ctx, at("connectors"), q, &out)
	return out, created, err
}

// submit sends the digest of a module that the host has, or uploads a module.
func (c connectorClient) submit(ctx context.Context, path string, q host.InstallConnector,
	out any) (created bool, err error) {
	if q.Digest != "" {
		body := map[string]any{"source": map[string]string{"type": "digest", "digest": q.Digest}}
		return c.put(ctx, http.MethodPost, path, nil, body, out)
	}
	return c.upload(ctx, path, out, part{"module", q.Module}, part{"manifest", q.Manifest}, part{"signature", q.Signature},
		part{"key", []byte(q.Key)},
		part{"expectedDigest", []byte(q.ExpectedDigest)}, part{"force", yes(q.Force)},
		part{"conformance", yes(q.Conformance)})
}

// A part of an upload; one without content is left out.
type part struct {
	name    string
	content []byte
}

func (c *transport) upload(ctx context.Context, path string, out any, parts ...part) (created bool, err error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, p := range parts {
		if len(p.content) == 0 {
			continue
		}
		f, err := w.CreateFormField(p.name)
		if err == nil {
			_, err = f.Write(p.content)
		}
		if err != nil {
			return false, fmt.Errorf("make upload: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return false, fmt.Errorf("make upload: %w", err)
	}
	header := http.Header{"Content-Type": {w.FormDataContentType()}, "Accept": {"application/json"}}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	status, err := c.receive(ctx, http.MethodPost, path, nil, header, &body, out)
	return status == http.StatusCreated, err
}

func yes(b bool) []byte {
	if b {
		return []byte("true")
	}
	return nil
}

// UninstallConnector uninstalls a connector, or one version of it if version is not "".
func (c connectorClient) UninstallConnector(ctx context.Context, name, version string) error {
	q := url.Values{}
	if version != "" {
		q.Set("version", version)
	}
	return c.call(ctx, http.MethodDelete, at("connectors", name), q, nil, nil)
}

// Pins returns the publishers' keys that are pinned.
func (c connectorClient) Pins(ctx context.Context) ([]host.Pin, error) {
	var out struct {
		Data []host.Pin `json:"data"`
	}
	err := c.get(ctx, at("publishers"), nil, &out)
	return out.Data, err
}
