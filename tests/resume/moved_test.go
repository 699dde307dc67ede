//go:build unix

package resume

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/postgres"
)

// TestMoves kills the host of a run that waits, and answers at another one, to which the run
// moves; then that is stopped, and the run moves back. Everything is asked of the server once,
// and no secret is on a disk, that of the database included.
func TestMoves(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	database := server.Database(t)
	c := campaign.New(t, "kill -9, a run that waits moves to another host")
	dirs := t.TempDir()
	v := &victim{t: t, c: c, witness: newWitness(t)}
	url := withData(database, filepath.Join(dirs, "a")) + "&lease=3s"
	other := withData(database, filepath.Join(dirs, "b")) + "&lease=3s"
	a := begin(t, url)
	if st := a.do(command{Code: true}); !strings.Contains(st.Err, "admitted already") {
		t.Fatalf("the first host: %+v", st)
	}
	b := begin(t, other)
	asks := b.must(command{Code: true})
	code, _ := json.Marshal(asks.Code)
	a.must(command{Admit: asks.Host, Value: code})
	for _, name := range guests["Go"] {
		wasm := connector(t, name)
		b.must(command{Install: wasm})
		a.must(command{Install: wasm})
		config, _ := json.Marshal(map[string]string{"server": v.witness.URL + "/" + name})
		a.must(command{Connect: name, Config: string(config), Host: v.witness.URL})
		id := a.must(command{Start: name}).Run.ID
		first := a.must(command{Await: id})
		v.outlives(first)
		a.kill()
		b.must(command{Answer: id, Value: json.RawMessage(`{"answer": "autumn"}`)})
		second := b.must(command{Await: id, Not: first.Open.Interrupt})
		v.outlives(second)
		a = begin(t, url)
		b.stop()
		a.must(command{Answer: id, Value: json.RawMessage(`{"code": "` + plantedCode + `"}`)})
		last := a.must(command{Await: id, Not: second.Open.Interrupt})
		if last.Run.Status != "succeeded" {
			t.Errorf("%s ended %s: %s", name, last.Run.Status, last.Run.Result)
		}
		if last.Events["interrupt.requested"] != 2 || last.Events["run.resumed"] != 2 {
			t.Errorf("%s: %v", name, last.Events)
		}
		b = begin(t, other)
	}
	a.stop()
	b.stop()
	h, err := app.Open(t.Context(), app.Options{Store: url, NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range guests["Go"] {
		v.witness.check(t, h.Store, name, paths[name], true)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Crash(); err != nil { // its directory stays
		t.Fatal(err)
	}
	for _, dir := range []string{dirs, server.Dir} {
		v.search(dir)
	}
}
