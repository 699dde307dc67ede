package web_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// TestOnce: N parallel requests with one key do one thing.
func TestOnce(t *testing.T) {
	var ran atomic.Int32
	var s *site
	s = serve(t, nil, web.Route{Method: "POST", Path: "/v1/runs", Scope: access.RunsCreate, Keyed: true,
		Handle: func(c *fiber.Ctx) error {
			var q struct {
				WorkflowID string `json:"workflowId"`
			}
			if err := web.Body(c, &q); err != nil {
				return err
			}
			n := ran.Add(1)
			if q.WorkflowID == "broken" {
				return fmt.Errorf("the disk says %d", n)
			}
			web.SlotOf(c).Omit("token")
			body, err := web.Encode(map[string]any{"runId": n, "token": "one-time"})
			if err != nil {
				return err
			}
			if w := web.SlotOf(c).Writes(201, body, "/v1/runs/x"); w != nil {
				if err := s.store.Write(web.Context(c), w...); err != nil {
					return err
				}
			}
			c.Location("/v1/runs/x")
			return web.Bytes(c, 201, body)
		}})
	post := func(body, key string) answer {
		return s.do("POST", "/v1/runs", body, s.bearer(), "Idempotency-Key: "+key)
	}
	var all sync.WaitGroup
	var firsts atomic.Int32
	for range 32 {
		all.Go(func() {
			a := post(`{"workflowId":"a"}`, "k")
			if a.Status != 201 || a.Header.Get("Location") != "/v1/runs/x" || a.Body != `{"runId":1,"token":"one-time"}` {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if a.Header.Get("openwop-Idempotent-Replay") == "false" {
				firsts.Add(1)
			}
		})
	}
	all.Wait()
	if ran.Load() != 1 || firsts.Load() != 1 {
		t.Errorf("ran %d times, %d were the first", ran.Load(), firsts.Load())
	}
	post(`{"workflowId":"b"}`, "k").is(t, "other body", 409, "idempotency_key_mismatch")
	post(`{}`, "k").is(t, "no body", 409, "idempotency_key_mismatch")
	s.do("POST", "/v1/runs?x=1", `{"workflowId":"a"}`, s.bearer(), "Idempotency-Key: k").is(t, "other query", 409,
		"idempotency_key_mismatch")
	s.do("POST", "/v1/runs", `{"workflowId":"a"}`, "Authorization: Bearer "+s.reader, "Idempotency-Key: k").is(t,
		"no scope", 403, "forbidden")
	post(`{}`, strings.Repeat("k", 256)).is(t, "long key", 400, "validation_error")
	post(`{}`, "").is(t, "empty key", 400, "validation_error")

	// 400 is not kept: the same key may be used for the corrected request.
	post(`{"x":1}`, "k2").is(t, "unknown member", 400, "validation_error")
	post(`{"workflowId":"a"}`, "k2").is(t, "corrected", 201, "")
	// 500 is, for a minute.
	first, second := post(`{"workflowId":"broken"}`, "k3"), post(`{"workflowId":"broken"}`, "k3")
	first.is(t, "broken", 500, "internal_error")
	if second.Body != first.Body || second.Header.Get("openwop-Idempotent-Replay") != "true" {
		t.Errorf("again: %s", second.Body)
	}
	s.clock.add(access.SealLife)
	if a := post(`{"workflowId":"a"}`, "k"); a.Status != 201 || a.Body != `{"runId":1,"secretOmitted":true}` {
		t.Errorf("after ten minutes: %d %s", a.Status, a.Body)
	}
	post(`{"workflowId":"broken"}`, "k3")
	if n := ran.Load(); n != 4 {
		t.Errorf("ran %d times, want the first, the corrected, and twice the broken one", n)
	}
	// Without a key every request is its own.
	s.do("POST", "/v1/runs", `{"workflowId":"a"}`, s.bearer())
	if n := ran.Load(); n != 5 {
		t.Errorf("ran %d times", n)
	}
}

// TestOnceRestricted: who sees only some connections never gets the answer of
// somebody else's request.
func TestOnceRestricted(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/runs", Keyed: true, Handle: func(c *fiber.Ctx) error {
		return web.JSON(c, 201, web.Principal(c).ID)
	}})
	_, restricted, err := s.access.Keys.Create(t.Context(), &access.Principal{ID: "owner", Scopes: access.Everything},
		access.NewKey{Name: "r", Scopes: access.All(), Mode: access.Live, ConnectionIDs: []store.ConnectionID{"c"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := s.do("POST", "/v1/runs", `{}`, s.bearer(), "Idempotency-Key: k")
	b := s.do("POST", "/v1/runs", `{}`, "Authorization: Bearer "+restricted, "Idempotency-Key: k")
	if a.Body == b.Body || b.Header.Get("openwop-Idempotent-Replay") != "false" {
		t.Errorf("%s and %s", a.Body, b.Body)
	}
}
