// Package hosttest is what every implementation of the services of package host must
// do alike: the application in this process, and the client that reaches one over HTTP.
package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Services are what the application and the client both implement.
type Services interface {
	host.Connectors
	host.Connections
	host.Grants
	host.Secrets
	host.Authorizations
	host.Schedules
	host.Searcher
	host.Queries
	host.Assistants
	host.Files
}

// Manifest is what the module that is given to Test must have: a connector
// named hosttest that wants a server and a secret.
const Manifest = `{"protocol_version":"0.1.0","connector_id":"https://example.org/hosttest","connector_key":"hosttest","version":"1.0.0","display_name":"Host test",
 "runtime_requirements":{"bindings":{"network":{"required":true,"hosts":["api.example.org"]}}},
 "capabilities":{"human_interaction":["otp"],"refresh_policy":{"recommended_mode":"automatic","rationale":"x","background_safe":true}},
 "streams":[{"name":"answers","semantics":"mutable_state","primary_key":["id"],"coverage_strategy":"full_inventory",
  "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}],
 "sluice":{"secrets":[{"name":"token","destinations":[{"origin":"https://api.example.org","placements":["header:authorization"]}]}],
  "settings":{"type":"object","properties":{"ask":{"type":"array"}}}}}`

// Test runs the suite on services over an empty host. Each part leaves it empty again.
// wasm is a module with Manifest embedded, hold has a record of a connection hold a file.
func Test(t *testing.T, wasm []byte, over Services, hold Hold) {
	for name, part := range map[string]func(*suite){
		"Connectors": connectors, "Connections": connections, "Grants": grants, "Secrets": secrets,
		"Authorizations": authorizations, "Schedules": schedules, "Search": search, "Queries": queries,
		"Assistants": assistants, "Files": files, "Absent": absent,
	} {
		t.Run(name, func(t *testing.T) {
			part(&suite{T: t, Services: over, ctx: context.WithoutCancel(t.Context()), wasm: wasm, hold: hold})
		})
	}
}

type suite struct {
	*testing.T
	Services

	ctx  context.Context
	wasm []byte
	hold Hold
}

// must fails the test when there is an error.
func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// refused fails the test unless err is a refusal with a code, which over HTTP may stand
// in the details of a more common one.
func (s *suite) refused(err error, code string) {
	s.Helper()
	var r *host.Refusal
	if !errors.As(err, &r) || r.Code != code && r.Details["code"] != code || r.Message == "" {
		s.Errorf("%v, want %s", err, code)
	}
}

// absent fails the test unless err says that there is no such thing.
func (s *suite) absent(what string, err error) {
	s.Helper()
	var r *host.Refusal
	if !errors.Is(err, store.ErrNotFound) && (!errors.As(err, &r) || !strings.HasSuffix(r.Code, "not_found")) {
		s.Errorf("%s: %v", what, err)
	}
}

// made installs the connector and makes a connection of it.
func (s *suite) made(id store.ConnectionID) host.Connection {
	s.Helper()
	_, _, err := s.InstallConnector(s.ctx, host.InstallConnector{Module: slices.Clone(s.wasm)})
	s.must(err)
	c, err := s.CreateConnection(s.ctx, host.NewConnection{ConnectorName: "hosttest", ConnectionID: string(id)})
	s.must(err)
	s.Cleanup(func() {
		if err := s.DeleteConnection(s.ctx, id, true); err != nil && !errors.Is(err, store.ErrNotFound) {
			s.Error(err)
		}
		if err := s.UninstallConnector(s.ctx, "hosttest", ""); err != nil && !errors.Is(err, store.ErrNotFound) {
			s.Error(err)
		}
	})
	return c
}

func connectors(s *suite) {
	module := func() host.InstallConnector { return host.InstallConnector{Module: slices.Clone(s.wasm)} }
	looked, err := s.InspectConnector(s.ctx, module())
	s.must(err)
	if listed, err := s.Connectors(s.ctx); err != nil || len(listed) != 0 {
		s.Errorf("%v, %v: looking installs nothing", listed, err)
	}
	one, created, err := s.InstallConnector(s.ctx, module())
	s.must(err)
	if !created || one.Name != "hosttest" || one.ModuleDigest != looked.Digest {
		s.Errorf("created %v: %+v, inspected %s", created, one, looked.Digest)
	}
	if _, created, err := s.InstallConnector(s.ctx, module()); err != nil || created {
		s.Errorf("created again %v, %v", created, err)
	}
	if pins, err := s.Pins(s.ctx); err != nil || len(pins) != 0 {
		s.Errorf("%v, %v: it is unsigned", pins, err)
	}
	wrong := module()
	wrong.ExpectedDigest = "sha256:" + strings.Repeat("0", 64)
	_, _, err = s.InstallConnector(s.ctx, wrong)
	s.refused(err, "pack_integrity_failure")
	_, _, err = s.InstallConnector(s.ctx, host.InstallConnector{Module: []byte("no module")})
	s.refused(err, "module_invalid")

	s.made("keeps")
	s.refused(s.UninstallConnector(s.ctx, "hosttest", ""), "connector_in_use")
	s.must(s.DeleteConnection(s.ctx, "keeps", true))
	s.must(s.UninstallConnector(s.ctx, "hosttest", ""))
	if listed, err := s.Connectors(s.ctx); err != nil || len(listed) != 0 {
		s.Errorf("%v, %v", listed, err)
	}
}

func connections(s *suite) {
	c := s.made("one")
	if c.ConnectionID != "one" || c.ConnectorName != "hosttest" || c.Ready || len(c.NotReady) == 0 {
		s.Errorf("%+v", c)
	}
	_, err := s.CreateConnection(s.ctx, host.NewConnection{ConnectorName: "hosttest", ConnectionID: "one"})
	s.refused(err, "conflict")

	name := "Another name"
	changed, err := s.ChangeConnection(s.ctx, "one",
		host.ChangeConnection{DisplayName: &name, Settings: json.RawMessage(`{"ask":[]}`)}, &c.Revision)
	s.must(err)
	if changed.DisplayName != name || string(changed.Settings) != `{"ask":[]}` || changed.Revision == c.Revision {
		s.Errorf("%+v", changed)
	}
	_, err = s.ChangeConnection(s.ctx, "one", host.ChangeConnection{DisplayName: &name}, &c.Revision)
	s.refused(err, "precondition_failed")
	_, err = s.ChangeConnection(s.ctx, "one", host.ChangeConnection{Settings: json.RawMessage(`{"ask":1}`)}, nil)
	s.refused(err, "validation_error")

	listed, err := s.Connections(s.ctx)
	s.must(err)
	if len(listed) != 1 || listed[0].DisplayName != name {
		s.Errorf("%+v", listed)
	}
	s.must(s.DeleteConnection(s.ctx, "one", false))
	if _, err := s.Connection(s.ctx, "one"); !errors.Is(err, store.ErrNotFound) {
		s.Errorf("%v", err)
	}
}

func grants(s *suite) {
	s.made("one")
	asked, err := s.Requested(s.ctx, "one")
	s.must(err)
	if len(asked.Streams) != 1 || len(asked.Words) == 0 || len(asked.Missing) == 0 ||
		asked.Bindings["network"].Hosts == nil {
		s.Errorf("%+v", asked)
	}
	_, err = s.GrantConnection(s.ctx, "one",
		host.GrantTerms{Scope: json.RawMessage(`{"streams":[{"name":"none"}]}`), AccessMode: "continuous"})
	s.refused(err, "validation_error")
	g, err := s.GrantConnection(s.ctx, "one", host.GrantTerms{AccessMode: "continuous"})
	s.must(err)
	approved, err := s.ApproveBindings(s.ctx, "one",
		host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"api.example.org"}}})
	s.must(err)
	if g.Status != "active" || approved.Network == nil ||
		!slices.Equal(approved.Network.Hosts, []string{"api.example.org"}) {
		s.Errorf("%+v, %+v", g, approved)
	}
	c, err := s.Connection(s.ctx, "one")
	s.must(err)
	if c.Grant == nil || c.Grant.GrantID != g.GrantID || c.Bindings.Network == nil {
		s.Errorf("%+v", c)
	}
	s.must(s.RevokeGrant(s.ctx, "one", g.GrantID))
	if c, err := s.Connection(s.ctx, "one"); err != nil || c.Ready {
		s.Errorf("%+v, %v", c, err)
	}
}

func secrets(s *suite) {
	s.made("one")
	value := []byte("s3cr3t")
	s.must(s.SetSecret(s.ctx, "one", "token", value))
	if slices.Contains(value, 's') {
		s.Error("the value was not wiped")
	}
	listed, err := s.Secrets(s.ctx, "one")
	s.must(err)
	if len(listed) != 1 || listed[0].Name != "token" || !listed[0].Set || listed[0].SetAt == nil {
		s.Errorf("%+v", listed)
	}
	s.refused(s.SetSecret(s.ctx, "one", "token", nil), "validation_error")
	s.must(s.RemoveSecret(s.ctx, "one", "token"))
	if listed, err := s.Secrets(s.ctx, "one"); err != nil || listed[0].Set {
		s.Errorf("%+v, %v", listed, err)
	}
}

// authorizations of what cannot be authorized; those that can need a server.
func authorizations(s *suite) {
	s.made("one")
	for _, secret := range []string{"token", "none"} {
		_, err := s.Authorize(s.ctx,
			host.NewAuthorization{Connector: "hosttest", Overrides: &host.Overrides{Connection: "one"}, Secret: secret,
				Flow: "device_code"})
		s.refused(err, "validation_error")
	}
	_, err := s.Authorize(s.ctx,
		host.NewAuthorization{Connector: "none", Overrides: &host.Overrides{}, Secret: "token", Flow: "device_code"})
	s.refused(err, "connector_not_runnable")
}

func schedules(s *suite) {
	s.made("one")
	_, err := s.Schedule(s.ctx, "one")
	s.absent("Schedule", err)
	every := int64(21_600)
	put, created, err := s.PutSchedule(s.ctx, "one", host.ScheduleDefinition{IntervalSeconds: &every}, nil)
	s.must(err)
	if !created || put.IntervalSeconds != every {
		s.Errorf("created %v: %+v", created, put)
	}
	_, created, err = s.PutSchedule(s.ctx, "one", host.ScheduleDefinition{Cron: "0 6 * * *", Timezone: "Europe/Berlin"},
		&put.Revision)
	s.must(err)
	if created {
		s.Error("it was there")
	}
	_, _, err = s.PutSchedule(s.ctx, "one", host.ScheduleDefinition{IntervalSeconds: &every}, &put.Revision)
	s.refused(err, "precondition_failed")
	_, _, err = s.PutSchedule(s.ctx, "one", host.ScheduleDefinition{Cron: "never"}, nil)
	s.refused(err, "schedule_invalid")

	paused, err := s.PauseSchedule(s.ctx, "one")
	s.must(err)
	if paused.Enabled {
		s.Errorf("%+v", paused)
	}
	if resumed, err := s.ResumeSchedule(s.ctx, "one"); err != nil || !resumed.Enabled {
		s.Errorf("%+v, %v", resumed, err)
	}
	if page, next, err := s.ScheduleHistory(s.ctx, "one", "", 10); err != nil || len(page) != 0 || next != "" {
		s.Errorf("%+v, %q, %v", page, next, err)
	}
	_, err = s.ScheduleStatistics(s.ctx, "one")
	s.must(err)
	if listed, err := s.Schedules(s.ctx); err != nil || len(listed) != 1 || listed[0].ConnectionID != "one" {
		s.Errorf("%+v, %v", listed, err)
	}
	s.must(s.DeleteSchedule(s.ctx, "one"))
	if listed, err := s.Schedules(s.ctx); err != nil || len(listed) != 0 {
		s.Errorf("%+v, %v", listed, err)
	}
}

// absent is what a service says of what is not there.
func absent(s *suite) {
	name, every := "x", int64(3600)
	for what, do := range map[string]func() error{
		"Connector":          func() error { _, err := s.Connector(s.ctx, "none"); return err },
		"UninstallConnector": func() error { return s.UninstallConnector(s.ctx, "none", "") },
		"Connection":         func() error { _, err := s.Connection(s.ctx, "none"); return err },
		"ChangeConnection": func() error {
			_, err := s.ChangeConnection(s.ctx, "none", host.ChangeConnection{DisplayName: &name}, nil)
			return err
		},
		"DeleteConnection": func() error { return s.DeleteConnection(s.ctx, "none", false) },
		"Requested":        func() error { _, err := s.Requested(s.ctx, "none"); return err },
		"GrantConnection": func() error {
			_, err := s.GrantConnection(s.ctx, "none", host.GrantTerms{AccessMode: "continuous"})
			return err
		},
		"ApproveBindings":     func() error { _, err := s.ApproveBindings(s.ctx, "none", host.Bindings{}); return err },
		"Authorization":       func() error { _, err := s.Authorization(s.ctx, "none", ""); return err },
		"CancelAuthorization": func() error { return s.CancelAuthorization(s.ctx, "none") },
		"SetSecret":           func() error { return s.SetSecret(s.ctx, "none", "token", []byte("x")) },
		"Secrets":             func() error { _, err := s.Secrets(s.ctx, "none"); return err },
		"Files":               func() error { _, err := s.Files(s.ctx, store.FileQuery{Connection: "none"}); return err },
		"OpenFile": func() error {
			_, _, err := s.OpenFile(s.ctx, "none", store.Digest("sha256:"+strings.Repeat("0", 64)))
			return err
		},
		"Assistant":       func() error { _, err := s.Assistant(s.ctx, "none"); return err },
		"RevokeAssistant": func() error { _, err := s.RevokeAssistant(s.ctx, "none"); return err },
		"AssistantCalls":  func() error { _, err := s.AssistantCalls(s.ctx, "none", 0, 10); return err },
		"DecideCall":      func() error { return s.DecideCall(s.ctx, "none", "call_none", true) },
		"Schedule":        func() error { _, err := s.Schedule(s.ctx, "none"); return err },
		"DeleteSchedule":  func() error { return s.DeleteSchedule(s.ctx, "none") },
		"PutSchedule": func() error {
			_, _, err := s.PutSchedule(s.ctx, "none", host.ScheduleDefinition{IntervalSeconds: &every}, nil)
			return err
		},
	} {
		s.absent(what, do())
	}
}

// search finds nothing where nothing was collected, and says what is wrong with a query.
func search(s *suite) {
	s.made("searched")
	r, err := s.Search(s.ctx,
		host.SearchQuery{Words: `word "two words" begin* -without`, ConnectionID: "searched", Stream: "answers", Limit: 3})
	s.must(err)
	if r.Hits == nil || len(r.Hits) > 0 || r.More {
		s.Errorf("%+v", r)
	}
	for _, q := range []host.SearchQuery{{}, {Words: "-without"}, {Words: strings.Repeat("word ", 21)},
		{Words: "word", Limit: 101}, {Words: "word", Limit: -1}} {
		_, err := s.Search(s.ctx, q)
		s.refused(err, "validation_error")
	}
}

// queries of what there is not, of values, and of what is wrong.
func queries(s *suite) {
	s.made("queried")
	if tables, err := s.Tables(s.ctx, nil); err != nil || tables == nil || len(tables) > 0 {
		s.Errorf("%+v, %v", tables, err)
	}
	if copies, err := s.Copying(s.ctx, nil); err != nil || copies == nil || len(copies) > 0 {
		s.Errorf("%+v, %v", copies, err)
	}
	r, err := s.Query(s.ctx,
		host.Query{SQL: `SELECT 1 AS one, 'a"b', NULL, 0.5, x'00' UNION ALL SELECT 2, '', 1, 2, NULL`, Rows: 1})
	s.must(err)
	if row, err := json.Marshal(r.Rows); err != nil || string(row) != `[[1,"a\"b",null,0.5,"AA=="]]` || !r.Truncated ||
		len(r.Columns) != 5 || r.Columns[0].Name != "one" {
		s.Errorf("%s, %+v, %v", row, r, err)
	}
	if r, err := s.Query(s.ctx, host.Query{SQL: `SELECT 1 WHERE 0`}); err != nil || r.Rows == nil ||
		len(r.Rows) > 0 || r.Truncated {
		s.Errorf("%+v, %v", r, err)
	}
	for sql, code := range map[string]string{
		`SELECT * FROM none.items`: "query_invalid", `SELEKT`: "query_invalid", `SELECT 1; SELECT 2`: "query_invalid",
		`ATTACH 'x' AS y`: "query_denied", `DELETE FROM queried.answers`: "query_invalid",
		`SELECT zeroblob(1000000000)`: "query_limit", ``: "validation_error",
	} {
		_, err := s.Query(s.ctx, host.Query{SQL: sql})
		s.refused(err, code)
	}
	for _, rows := range []int{-1, 100_001} {
		_, err := s.Query(s.ctx, host.Query{SQL: `SELECT 1`, Rows: rows})
		s.refused(err, "validation_error")
	}
}

// assistants are made, listed, and end; their names are then free again.
func assistants(s *suite) {
	s.made("seen")
	terms := host.AssistantTerms{Connections: []host.AssistantGrant{{ConnectionID: "seen",
		Scope: json.RawMessage(`{"streams":[{"name":"answers","fields":["id"]}]}`)}}, Ask: true}
	made, err := s.AddAssistant(s.ctx, host.NewAssistant{Name: "notes", AssistantTerms: terms})
	s.must(err)
	if made.Token == "" || made.Status != "active" || !made.Ask || made.Run || made.CreatedAt.IsZero() {
		s.Errorf("%+v", made)
	}
	_, err = s.AddAssistant(s.ctx, host.NewAssistant{Name: "notes", AssistantTerms: terms})
	s.refused(err, "conflict")
	for _, wrong := range []host.NewAssistant{
		{Name: "No Slug", AssistantTerms: terms}, {Name: "a"},
		{Name: "a", AssistantTerms: host.AssistantTerms{Connections: []host.AssistantGrant{{ConnectionID: "none"}}}},
		{Name: "a", AssistantTerms: host.AssistantTerms{Connections: []host.AssistantGrant{{ConnectionID: "seen",
			Scope: json.RawMessage(`{"streams":[{"name":"none"}]}`)}}}},
	} {
		_, err := s.AddAssistant(s.ctx, wrong)
		s.refused(err, "validation_error")
	}
	one, err := s.Assistant(s.ctx, "notes")
	s.must(err)
	all, err := s.Assistants(s.ctx)
	s.must(err)
	if one.Token != "" || len(all) != 1 || all[0].Token != "" || all[0].Name != "notes" || len(one.Connections) != 1 ||
		one.Connections[0].ConnectionID != "seen" || one.Calls != 0 {
		s.Errorf("%+v, %+v", one, all)
	}
	if calls, err := s.AssistantCalls(s.ctx, "notes", 0, 10); err != nil || calls == nil || len(calls) > 0 {
		s.Errorf("%+v, %v", calls, err)
	}
	s.absent("DecideCall", s.DecideCall(s.ctx, "notes", "call_none", true))
	for range 2 {
		if ended, err := s.RevokeAssistant(s.ctx, "notes"); err != nil || ended.Status != "revoked" {
			s.Errorf("%+v, %v", ended, err)
		}
	}
	again, err := s.AddAssistant(s.ctx, host.NewAssistant{Name: "notes", AssistantTerms: terms})
	if err != nil || again.Token == made.Token {
		s.Errorf("%+v, %v", again, err)
	}
	if _, err := s.RevokeAssistant(s.ctx, "notes"); err != nil {
		s.Error(err)
	}
}
