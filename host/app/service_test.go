package app_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

var somebody = host.Principal{ID: "key:k1", Transport: "rest", RequestID: "req_1", Address: "192.0.2.1"}

// service is one on a host of its own.
func service(t *testing.T) (*app.Service, *app.Host) {
	t.Helper()
	h := openHost(t)
	return app.ServiceOf(h), h
}

// bare is a module without a manifest that does nothing.
const bare = "\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x05\x04\x01\x01\x01\x01" +
	"\x07\x13\x02\x06_start\x00\x00\x06memory\x02\x00" + "\x0a\x04\x01\x02\x00\x0b"

// module embeds a manifest.
func module(t *testing.T, manifest string) []byte {
	t.Helper()
	wasm, err := sandbox.EmbedManifest([]byte(bare), []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

const stream = `{"name": "mail", "semantics": "append_only", "primary_key": ["id"], "consent_time_field": "sent",
	"selection": {"fields": true, "resources": true, "resource_field": "folder"}, "views": [{"id": "brief", "label": "Brief", "fields": ["folder", "sent"]}],
	"schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "folder": {"type": "string"}, "body": {"type": "string"}, "sent": {"type": "string", "format": "date-time"}}}},
	{"name": "rows", "semantics": "append_only", "primary_key": ["id"], "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}`

// manifestOf is a manifest with bindings and a sluice block.
func manifestOf(id, version, bindings, sluice string) string {
	if sluice != "" {
		sluice = `, "sluice": ` + sluice
	}
	return fmt.Sprintf(`{"protocol_version": "0.1.0", "connector_id": %q, "version": %q, "display_name": "Mail", "description": "Collects mail",
		"runtime_requirements": {"bindings": {%s}}, "streams": [%s]%s}`, id, version, bindings, stream, sluice)
}

// rich asks for one of everything.
func rich(id, version string) string {
	return manifestOf(id, version,
		`"network": {"required": true, "hosts": ["api.mail.example", "192.168.1.7", "*.files.example"]},
		"filesystem": {"required": true, "mounts": [{"name": "in", "mode": "ro"}, {"name": "out", "mode": "rw"}]}, "interactive": {"required": false}`,
		`{"settings": {"type": "object", "required": ["account"], "properties": {"account": {"type": "string"}, "depth": {"type": "integer"}}},
		"secrets": [{"name": "token", "label": "Token", "required": true, "destinations": [{"origin": "https://api.mail.example", "path_prefix": "/v2/", "placements": ["header:authorization"]}]},
		{"name": "seen", "delivery": "plain"}, {"name": "unused"}]}`)
}

func upload(t *testing.T, s *app.Service, manifest string) host.Connector {
	t.Helper()
	c, _, err := s.InstallConnector(host.As(t.Context(), somebody), host.InstallConnector{Module: module(t, manifest)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connected is a service with the connection mail of the rich connector.
func connected(t *testing.T) (*app.Service, *app.Host) {
	t.Helper()
	s, h := service(t)
	upload(t, s, rich("mail", "1"))
	if _, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail", Settings: []byte(`{"account":"a"}`)}); err != nil {
		t.Fatal(err)
	}
	return s, h
}

// refused checks a refusal: its code, the rule of its one field if there is one, and that
// nothing that was submitted is in it.
func refused(t *testing.T, err error, code, rule string, submitted ...string) *host.Refusal {
	t.Helper()
	var r *host.Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Errorf("got %v, want %s", err, code)
		return &host.Refusal{}
	}
	text := fmt.Sprint(r.Message, r.Details)
	if rule != "" && !strings.Contains(text, " "+rule+"}") && r.Details["rule"] != rule {
		t.Errorf("%s by %v, want %s", code, r.Details, rule)
	}
	for _, s := range submitted {
		if strings.Contains(text, s) || strings.Contains(err.Error(), s) {
			t.Errorf("%q is in %s", s, text)
		}
	}
	return r
}

// actions are those that were written down, newest first.
func actions(t *testing.T, s *app.Service) (out []string) {
	t.Helper()
	page, _, err := s.AuditEntries(t.Context(), host.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		if e.Actor != somebody.ID || e.RequestID != somebody.RequestID || e.Address != somebody.Address {
			t.Errorf("%s by %q, %q from %q", e.Action, e.Actor, e.RequestID, e.Address)
		}
		out = append(out, e.Action)
	}
	return out
}

func wrote(t *testing.T, s *app.Service, action string) {
	t.Helper()
	if all := actions(t, s); !slices.Contains(all, action) {
		t.Errorf("no %s in %v", action, all)
	}
}

func absent(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
}
