package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// dumped names the data directory whose content a child process prints.
const dumped = "SLUICE_CRASH_DUMP"

// trouble starts the part of a dump's line that is an error instead of content.
const trouble = "! "

// dump prints everything that a data directory holds, one line for each thing that can
// be asked for: its name, and the answer.
func dump(dir string) int {
	ctx := context.Background()
	h, err := app.Open(ctx, app.Options{Store: "badger:" + dir, NoSandbox: true})
	if err != nil {
		say("open", nil, err)
		return 0
	}
	if d, ok := h.Store.(interface{ Damage() *store.DamageError }); ok && d.Damage() != nil {
		say("open", nil, d.Damage())
	}
	conns, err := h.Store.Connections(ctx)
	say("connections", conns, err)
	connectors, err := h.Store.Connectors(ctx)
	say("connectors", connectors, err)
	dumpRuns(ctx, h.Store)
	for _, stream := range []store.Stream{"items", "latest"} {
		dumpRecords(ctx, h.Store, stream)
	}
	states, err := h.Store.States(ctx, "pages", "")
	say("states", states, err)
	counters, err := h.Store.Streams(ctx, "pages")
	say("counters", counters, err)
	gaps, err := h.Store.Gaps(ctx, "pages", "", "")
	say("gaps", gaps, err)
	l, err := h.Load(ctx, "pages", "")
	if err == nil {
		say("module", []any{l.Connector.Digest, string(l.Manifest.Raw)}, nil)
	} else {
		say("module", nil, err)
	}
	dumpVault(dir)
	say("recount", "equal", h.Store.Verify(ctx))
	if err := h.Close(); err != nil {
		say("close", nil, err)
	}
	return 0
}

func say(name string, what any, err error) {
	text, bad := json.Marshal(what)
	if err = errors.Join(err, bad); err != nil {
		text = []byte(trouble + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	fmt.Printf("%s\t%s\n", name, text)
}

func dumpRuns(ctx context.Context, s store.Store) {
	runs, err := s.Runs(ctx, "", "", 1000)
	say("runs", runs, err)
	for i, r := range runs {
		events, err := s.Events(ctx, r.ID, 0, 10_000)
		say(fmt.Sprint("events ", i), events, err)
		one, err := s.Run(ctx, r.ID)
		say(fmt.Sprint("run ", i), one, err)
	}
}

// dumpRecords lists a stream, and asks for each record by its key.
func dumpRecords(ctx context.Context, s store.Store, stream store.Stream) {
	q := store.RecordQuery{Connection: "pages", Stream: stream, Deleted: true, Limit: 1000}
	var all []store.Record
	for {
		page, err := s.Records(ctx, q)
		if err != nil {
			say("records of "+string(stream), nil, err)
			break
		}
		all = append(all, page.Records...)
		if !page.More {
			say("records of "+string(stream), all, nil)
			break
		}
		q.After = page.Records[len(page.Records)-1].Version
	}
	var found []string
	for p := 1; p <= pagesPerRun; p++ {
		key := fmt.Sprintf("p%05d-000", p)
		r, err := s.Record(ctx, "pages", stream, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			say("keys of "+string(stream), nil, err)
			return
		}
		found = append(found, fmt.Sprintf("%s %s %v", key, r.Data, err))
	}
	say("keys of "+string(stream), found, nil)
}

func dumpVault(dir string) {
	v, err := vault.Open(dir)
	if err != nil {
		say("vault", nil, err)
		return
	}
	entries, err := v.List()
	var names []string
	for _, e := range entries {
		names = append(names, e.Connection+"/"+e.Name)
	}
	say("vault", names, err)
	for _, name := range []string{"password", "token"} {
		value, err := secret(dir, "pages", name)
		say("secret "+name, value, err)
	}
}
