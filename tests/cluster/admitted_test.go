//go:build unix

package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A host that is not admitted to the vault says so, and what to do, whatever it is asked that needs a secret; it does the rest.
func TestNotAdmitted(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t))
	c.flags = []string{"--webhook-loopback"}
	c.add("a")
	c.proxies["b"] = c.server.Proxy(t)
	a, b := c.hosts["a"], c.open("b")
	a.install()
	a.connect("asks", step{"do": "otp", "text": "Code?"})
	a.connect("emits", step{"do": "emit", "n": 1})
	hook := map[string]any{"url": "http://127.0.0.1:1/in", "events": []string{"run.*"}}
	var made struct{ WebhookID string }
	a.do("POST", "/v1/webhooks", hook, &made)
	id := a.begin("asks")
	a.wait(id, served.Asks)
	run, at := "/v1/runs/"+string(id), "/v1/webhooks/"+made.WebhookID
	for path, body := range map[string]any{
		"/v1/webhooks": hook, at + ":test": nil, at + ":rotate": map[string]any{},
		run + ":pause": map[string]any{}, run + "/cancel": map[string]any{},
	} {
		var refused *served.Failure
		if _, err := b.Do(soon(t), "POST", path, body, nil); !errors.As(err, &refused) || refused.Status != 503 ||
			!strings.Contains(refused.Message, "sluice hosts admit "+b.id) {
			t.Errorf("POST %s at a host that is not admitted: %v", path, err)
		}
	}
	b.do("GET", at+"/deliveries", nil, nil)
	b.do("DELETE", at, nil, nil)
	b.wait(b.begin("emits"), served.Over)
	if _, err := a.Do(soon(t), "GET", at, nil, nil); err == nil {
		t.Error("a webhook that was deleted is there")
	}
}
