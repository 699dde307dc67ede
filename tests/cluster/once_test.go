//go:build unix

package cluster

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// Equal requests with one Idempotency-Key at several hosts at the same moment do what they ask once, and have one
// answer, whatever they ask.
func TestOnceAtSeveralHosts(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	a.connect("there")
	revision := func() string {
		var of host.Connection
		a.do("GET", "/v1/connections/there", nil, &of)
		return fmt.Sprintf("%q", fmt.Sprint(of.Revision))
	}
	for i := range 4 {
		id := fmt.Sprint("made", i)
		for _, q := range []struct {
			method, path string
			body         any
			headers      []string
		}{
			{"PATCH", "/v1/connections/there", map[string]any{"displayName": id}, []string{"If-Match", revision()}},
			{"POST", "/v1/connections", host.NewConnection{ConnectorName: "steps", ConnectionID: id}, nil},
			{"POST", "/v1/connections/there/grants", map[string]any{"scope": nil, "accessMode": "continuous"}, nil},
			{"DELETE", "/v1/connections/" + id, nil, nil},
		} {
			type answer struct {
				status int
				body   string
			}
			var answers [6]answer
			var all sync.WaitGroup
			for n := range answers {
				all.Go(func() {
					var body any
					res, err := []*member{a, b}[n%2].Do(soon(t), q.method, q.path, q.body, &body,
						append([]string{"Idempotency-Key", q.path + id}, q.headers...)...)
					if failure, ok := err.(*served.Failure); ok || err == nil {
						answers[n] = answer{res.StatusCode, fmt.Sprint(body, failure)}
						return
					}
					t.Error(err)
				})
			}
			all.Wait()
			for _, one := range answers {
				if one != answers[0] || one.status >= http.StatusBadRequest {
					t.Errorf("%s %s was answered %v and %v", q.method, q.path, answers[0], one)
				}
			}
		}
	}
}
