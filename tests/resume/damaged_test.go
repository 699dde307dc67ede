//go:build unix

package resume

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// A tampered store gives out other journals than were put into it.
type tampered struct {
	store.Store
	mu     sync.Mutex
	with   map[store.RunID][][]byte // pieces, nil for none
	beside map[store.RunID][]byte   // the first of those beside the order
}

// Journal implements store.Store.
func (s *tampered) Journal(ctx context.Context, id store.RunID, n uint64) ([]byte, error) {
	s.mu.Lock()
	pieces, ok := s.with[id]
	beside := s.beside[id]
	s.mu.Unlock()
	switch {
	case n == 1<<62 && beside != nil:
		return beside, nil
	case !ok:
		return s.Store.Journal(ctx, id, n)
	case n >= 1<<61: // those beside the order
		return s.Store.Journal(ctx, id, n)
	case n >= uint64(len(pieces)) || pieces[n] == nil:
		return nil, store.ErrNotFound
	}
	return pieces[n], nil
}

// pieces are those of a run's journal.
func (s *tampered) pieces(t *testing.T, id store.RunID, lengths []int) (all [][]byte) {
	t.Helper()
	for n := range lengths {
		b, err := s.Store.Journal(t.Context(), id, uint64(n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// flipped flips a bit of the nth piece, from its end where that is negative, at a byte likewise.
func flipped(n, at int) func(pieces, _, _ [][]byte) [][]byte {
	return func(p, _, _ [][]byte) [][]byte {
		i, j := (n+len(p))%len(p), at
		if j < 0 {
			j += len(p[i])
		}
		p[i][j] ^= 4
		return p
	}
}

// damages make another journal of that of a run which asks for the second time, of what it was
// when it asked for the first time, and of that of another run.
var damages = map[string]func(pieces, before, other [][]byte) [][]byte{
	"a nonce":                   flipped(0, 3),
	"what a piece begins with":  flipped(0, 12+16),
	"an entry":                  flipped(0, 80),
	"a seal":                    flipped(0, -1),
	"the tag of the one before": flipped(-1, 12+3),
	"the last entry":            flipped(-1, -17),
	"the last seal":             flipped(-1, -16),
	"cut by a byte":             func(p, _, _ [][]byte) [][]byte { p[0] = p[0][:len(p[0])-1]; return p },
	"emptied":                   func(p, _, _ [][]byte) [][]byte { p[len(p)-1] = []byte{}; return p },
	"the first is gone":         func(p, _, _ [][]byte) [][]byte { p[0] = nil; return p },
	"the last is gone":          func(p, _, _ [][]byte) [][]byte { return p[:len(p)-1] },
	"swapped":                   func(p, _, _ [][]byte) [][]byte { p[0], p[1] = p[1], p[0]; return p },
	"an older copy":             func(_, before, _ [][]byte) [][]byte { return before },
	"another run's":             func(_, _, other [][]byte) [][]byte { return other },
	"one of another run":        func(p, _, other [][]byte) [][]byte { p[1] = other[1]; return p },
}

// TestDamaged has runs sleep at their second question, changes their journals and answers: each run
// ends and says why, nothing is asked of the server or stored for it, and its connection is free.
func TestDamaged(t *testing.T) {
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := options(open(t, filepath.Join(t.TempDir(), "data")))
			o.Journal.Awake = time.Millisecond
			h, err := app.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			st := &tampered{Store: h.Store, with: map[store.RunID][][]byte{}, beside: map[store.RunID][]byte{}}
			h.Store = st
			s, err := h.Service(t.Context(), app.ServiceOptions{Grace: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				s.Close(context.Background())
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
			d := &damaging{t: t, service: &service{Service: s, host: h}, store: st, witness: newWitness(t)}
			for name, made := range map[string]func(*testing.T, string) string{"waits": connector, "resumable": resumable} {
				if name == "waits" && kind == "postgres" { // what differs between them does not between stores
					continue
				}
				d.t = t
				d.do(command{Install: made(t, "clerk")})
				d.waiting(name + "-other")
				for what, damage := range damages {
					t.Run(name+": "+what, func(t *testing.T) { d.t = t; d.damage(fmt.Sprintf("%s-%d", name, d.runs), damage, nil) })
				}
				t.Run(name+": one beside the others", func(t *testing.T) {
					d.t = t
					d.damage(name+"-beside", func(p, _, _ [][]byte) [][]byte { return p }, []byte("no piece"))
				})
			}
		})
	}
}

type damaging struct {
	t       *testing.T
	service *service
	store   *tampered
	witness *witness
	runs    int
	other   [][]byte // pieces of a run that sleeps
}

func (d *damaging) do(c command) state {
	d.t.Helper()
	st, err := d.service.do(host.As(d.t.Context(), host.Principal{ID: "owner", Transport: "ui"}), c)
	if err != nil {
		d.t.Fatalf("%+v: %v", c, err)
	}
	return st
}

// asks waits for the next question of a run, and until it sleeps.
func (d *damaging) asks(id store.RunID, not string) (st state, pieces [][]byte) {
	d.t.Helper()
	st = d.do(command{Await: id, Not: not})
	if st.Open == nil {
		d.t.Fatalf("it ended %s: %s", st.Run.Status, st.Run.Result)
	}
	for d.service.RunStats().Accepted > 0 {
		<-time.After(5 * time.Millisecond)
	}
	st = d.do(command{Await: id, Not: not})
	return st, d.store.pieces(d.t, id, st.Pieces)
}

// waiting is a run of a new connection that sleeps at its second question.
func (d *damaging) waiting(connection string) (second state, before, pieces [][]byte) {
	d.runs++
	config, _ := json.Marshal(map[string]string{"server": d.witness.URL + "/" + connection})
	d.do(command{Connect: connection, Config: string(config), Host: d.witness.URL})
	id := d.do(command{Start: connection}).Run.ID
	first, before := d.asks(id, "")
	d.do(command{Answer: id, Value: json.RawMessage(`{"answer": "autumn"}`)})
	second, pieces = d.asks(id, first.Open.Interrupt)
	d.other = pieces
	return second, before, pieces
}

// stored is how often records of a connection were stored.
func (d *damaging) stored(connection string) uint64 {
	page, err := d.store.Records(d.t.Context(),
		store.RecordQuery{Connection: store.ConnectionID(connection), Stream: "items", Limit: 100})
	if err != nil {
		d.t.Fatal(err)
	}
	return page.Version
}

func (d *damaging) damage(connection string, damage func(pieces, before, other [][]byte) [][]byte,
	beside []byte) {
	t, other := d.t, d.other
	open, before, pieces := d.waiting(connection)
	id, stored := open.Run.ID, d.stored(connection)
	d.witness.mu.Lock()
	asked := d.witness.n
	d.witness.mu.Unlock()
	changed := damage(pieces, before, other)
	d.store.mu.Lock()
	d.store.with[id], d.store.beside[id] = changed, beside
	d.store.mu.Unlock()
	_, err := d.service.do(host.As(t.Context(), host.Principal{ID: "owner", Transport: "ui"}),
		command{Answer: id, Value: json.RawMessage(`{"code": "` + plantedCode + `"}`)})
	if err == nil {
		t.Error("the answer was taken")
	}
	end := d.do(command{Await: id, Not: open.Open.Interrupt})
	if reason := reasonOf(end.Run); end.Run.Status != "failed" || reason != "replay_diverged" &&
		reason != "controller_restarted" {
		t.Errorf("it ended %s: %s", end.Run.Status, end.Run.Result)
	}
	if end.Events["run.failed"] != 1 || end.Events["interrupt.requested"] != 2 {
		t.Errorf("%v", end.Events)
	}
	if got := d.stored(connection); got != stored {
		t.Errorf("records were stored %d times, and %d before", got, stored)
	}
	d.witness.mu.Lock()
	defer d.witness.mu.Unlock()
	if d.witness.n != asked {
		t.Errorf("the server was asked %d times, and %d before", d.witness.n, asked)
	}
	leases, err := d.store.Leases(t.Context())
	for _, l := range leases {
		if l.RunID == id {
			t.Error("its connection is not free")
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// TestCut kills a host while a run waits for a server, with nothing on its timeline since it was started, and cuts
// the last piece off its journal: the run ends, and asks the server for nothing again.
func TestCut(t *testing.T) {
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, w := open(t, filepath.Join(t.TempDir(), "data")), newWitness(t)
			asked := make(chan struct{}, 100)
			slow := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/a/1") {
					asked <- struct{}{}
					<-r.Context().Done()
					return
				}
				w.ServeHTTP(out, r)
			}))
			t.Cleanup(slow.Close)
			p := begin(t, url)
			p.must(command{Install: resumable(t, "clerk")})
			p.must(command{Connect: "one", Config: fmt.Sprintf(`{"server": %q}`, slow.URL+"/one"), Host: slow.URL})
			id := p.must(command{Start: "one"}).Run.ID
			<-asked
			p.kill()
			h, err := app.Open(t.Context(), options(url))
			if err != nil {
				t.Fatal(err)
			}
			st := &tampered{Store: h.Store, with: map[store.RunID][][]byte{}}
			h.Store = st
			look, err := (&service{host: h}).look(t.Context(), id)
			if err != nil || len(look.Pieces) < 3 {
				t.Fatal(len(look.Pieces), err)
			}
			st.with[id] = st.pieces(t, id, look.Pieces[:len(look.Pieces)-1])
			s, err := h.Service(t.Context(), app.ServiceOptions{Grace: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				s.Close(context.Background())
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
			end, err := (&service{Service: s, host: h}).await(t.Context(), id, "")
			if err != nil || reasonOf(end.Run) != "replay_diverged" {
				t.Errorf("it ended %s: %s, %v", end.Run.Status, end.Run.Result, err)
			}
			if len(asked) > 0 {
				t.Error("the server was asked again")
			}
		})
	}
}
