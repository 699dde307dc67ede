package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A stage is where a scenario is played: a transport, an engine, a store.
type stage struct {
	connection  store.ConnectionID
	scenario    *scenario
	transport   string
	interpreter bool
	host        *app.Host
	connector   *app.Loaded
	starting    func(*run.Run) // sees a run of a fake guest before it begins
}

// A played is a run that is over, with everything it left.
type played struct {
	result  *run.Result
	refused *run.Refusal
	events  []store.Event
	asked   []run.Question
	steered []error  // what came of pausing and resuming
	secrets []string // values that no event may hold
}

// open prepares a stage. It may return the refusal of the manifest.
func (g *stage) open(t *testing.T) *run.Refusal {
	t.Helper()
	ctx := context.Background()
	query, _ := g.scenario.one("store")
	st, err := badger.OpenURL("memory:?memory=small&"+query, badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	g.host = shared.host.Over(st)
	g.options(t)
	manifest, err := g.scenario.manifest()
	if err != nil {
		t.Fatal(err)
	}
	sidecar := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(sidecar, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	g.connector, err = g.host.Load(ctx, shared.players[g.transport], sidecar)
	var refused *run.Refusal
	if errors.As(err, &refused) {
		return refused
	}
	if err != nil {
		t.Fatal(err)
	}
	g.connect(t)
	return nil
}

// options are limits and budgets.
func (g *stage) options(t *testing.T) {
	t.Helper()
	limits := map[string]any{}
	for _, l := range g.scenario.all("limit") {
		name, v, _ := strings.Cut(l, "=")
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		limits[name] = n
	}
	g.host.Options.Limits = abi.DefaultLimits()
	decode(t, limits, &g.host.Options.Limits)
	b := run.DefaultBudgets()
	b.ExitGrace, b.CancelGrace = 20*time.Second, 20*time.Second // a busy machine is no fault
	for _, l := range g.scenario.all("budget") {
		name, v, _ := strings.Cut(l, "=")
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		decode(t, map[string]any{name: d}, &b)
	}
	g.host.Options.Budgets = b
}

// decode sets the members of a struct by name; an unknown one is an error.
func decode(t *testing.T, from map[string]any, into any) {
	t.Helper()
	raw, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// connect makes the connection that the scenario describes.
func (g *stage) connect(t *testing.T) {
	t.Helper()
	now := time.Now()
	c := store.Connection{
		ID: g.connection, ConnectorID: g.connector.Connector.ID, Enabled: true, Manifest: g.connector.Manifest.Raw,
		Digest: g.connector.Connector.Digest, CreatedAt: now, UpdatedAt: now,
	}
	for _, extra := range g.scenario.all("connection") {
		if err := json.Unmarshal([]byte(extra), &c); err != nil {
			t.Fatalf("connection %s: %v", extra, err)
		}
	}
	if err := g.host.Store.PutConnection(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

// reconnect changes the connection between runs.
func (g *stage) reconnect(t *testing.T, extra string) {
	t.Helper()
	c, err := g.host.Store.Connection(context.Background(), g.connection)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(extra), &c); err != nil {
		t.Fatalf("connection %s: %v", extra, err)
	}
	if err := g.host.Store.PutConnection(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

// play performs one run.
func (g *stage) play(t *testing.T, r *playedRun) *played {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out := &played{}
	q := app.RunRequest{Connector: g.connector, Connection: g.connection, Interpreter: g.interpreter,
		Secrets: map[string]string{}}
	config := map[string]any{}
	steps, err := expand(r.steps)
	if err != nil {
		t.Fatal(err)
	}
	config["script"] = steps
	var cancelOn, cause, pauseOn, policy string
	owner := &scripted{play: out}
	for _, o := range r.with {
		switch o.word {
		case "scope":
			q.Scope = json.RawMessage(o.rest)
		case "state":
			q.State = json.RawMessage(o.rest)
		case "reset":
			q.ResetState = true
		case "no-persist":
			q.NoPersist = true
		case "mode":
			q.Mode = o.rest
		case "trigger":
			q.Trigger = o.rest
		case "hosts":
			q.Approved.Hosts = strings.Fields(o.rest)
		case "config":
			if err := json.Unmarshal([]byte(o.rest), &config); err != nil {
				t.Fatal(err)
			}
		case "connection":
			g.reconnect(t, o.rest)
		case "secret":
			name, value, _ := strings.Cut(o.rest, "=")
			q.Secrets[name] = value
			q.Approved.Plain = append(q.Approved.Plain, name) // the owner agrees
			if len(value) >= 8 {                              // shorter ones are no secret inside of a text
				out.secrets = append(out.secrets, value)
			}
		case "interactive":
			q.Owner = owner
		case "answer":
			q.Owner = owner
			owner.answers = append(owner.answers, o.rest)
		case "protect":
			out.secrets = append(out.secrets, o.rest)
		case "cancel-on":
			cancelOn, cause, _ = strings.Cut(o.rest, " ")
		case "pause-on":
			pauseOn, policy, _ = strings.Cut(o.rest, " ")
		default:
			t.Fatalf("unknown option %s", o.word)
		}
	}
	if q.Config, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	var current *run.Run
	q.Watch = func(e store.Event) {
		if cancelOn != "" && e.Type == cancelOn {
			current.Cancel(run.CancelRequest{Cause: orElse(cause, "owner"), By: "owner"})
		}
		switch {
		case pauseOn != "" && e.Type == pauseOn:
			_, err := current.Pause(run.PauseRequest{Policy: policy})
			out.steered = append(out.steered, err)
		case e.Type == "run.paused" && cancelOn == "":
			_, err := current.Resume(run.ResumeRequest{})
			out.steered = append(out.steered, err)
		}
	}
	current, err = g.host.Start(ctx, q)
	if err == nil {
		out.result, err = current.Do(ctx)
	}
	if err != nil && !errors.As(err, &out.refused) {
		t.Fatal(err)
	}
	if err := errors.Join(out.steered...); err != nil {
		t.Error(err)
	}
	if out.result != nil {
		out.events = g.events(t, out.result.RunID)
	}
	return out
}

func (g *stage) events(t tester, id store.RunID) []store.Event {
	t.Helper()
	var all []store.Event
	for {
		page, err := g.host.Store.Events(context.Background(), id, uint64(len(all)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// scripted is the owner of a scenario: answers in order, then silence.
//
//	success JSON, cancelled, timeout    what the owner says
//	never                               nothing, until the question is closed
//	error                               the owner's channel fails
//	other ID success JSON               an answer to another question
//	status WORD                         an answer with that status
type scripted struct {
	play    *played
	mu      sync.Mutex // guards what follows and play.asked
	answers []string
}

var errChannel = errors.New("the owner's channel is gone")

func (s *scripted) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	next := s.next(q)
	word, rest, _ := strings.Cut(next, " ")
	a := host.Answer{InteractionID: q.InteractionID, Status: word}
	switch word {
	case "never":
		<-ctx.Done()
		return a, ctx.Err()
	case "error":
		return a, errChannel
	case "status":
		a.Status = rest
	case "other":
		a.InteractionID, rest, _ = strings.Cut(rest, " ")
		a.Status, rest, _ = strings.Cut(rest, " ")
	}
	if a.Status == abi.AnswerSuccess && rest != "" {
		if err := json.Unmarshal([]byte(rest), &a.Data); err != nil {
			return a, fmt.Errorf("answer %s: %w", rest, err)
		}
	}
	return a, nil
}

func (s *scripted) next(q run.Question) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.play.asked = append(s.play.asked, q)
	if len(s.answers) == 0 {
		return "never"
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next
}
