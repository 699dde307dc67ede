//go:build unix

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/crash/page"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A fault strikes one of the hosts, or what is between them and their data, and is over when it
// returns. Hosts that ended of it are started again afterwards.
type fault func(f *faults, victim string)

// kinds are the faults, by what they are called.
var kinds = map[string]fault{
	"kill, started again": func(f *faults, victim string) { f.hosts[victim].kill() },
	"kill, missed": func(f *faults, victim string) {
		f.hosts[victim].kill()
		f.gone(victim)
	},
	"stop, shorter than the lease": func(f *faults, victim string) {
		f.hosts[victim].signal(syscall.SIGSTOP)
		time.Sleep(f.lease / 4)
		f.hosts[victim].signal(syscall.SIGCONT)
	},
	"stop, longer": func(f *faults, victim string) {
		f.hosts[victim].signal(syscall.SIGSTOP)
		f.gone(victim)
		f.hosts[victim].signal(syscall.SIGCONT)
		f.ends(victim)
	},
	"cut off, shorter than the lease": func(f *faults, victim string) {
		thaw := f.proxies[victim].Freeze()
		time.Sleep(f.lease / 4)
		thaw()
	},
	"cut off, longer": func(f *faults, victim string) {
		thaw := f.proxies[victim].Freeze()
		f.gone(victim)
		thaw()
		f.ends(victim)
	},
	"PostgreSQL stopped at once": func(f *faults, _ string) {
		if err := f.server.Crash(); err != nil {
			f.t.Fatal(err)
		}
		time.Sleep(time.Duration(f.IntN(int(f.lease))))
		if err := f.server.Start(); err != nil {
			f.t.Fatal(err)
		}
	},
	"no answer to COMMIT": func(f *faults, victim string) {
		p := f.proxies[victim]
		n := p.Cuts()
		p.CutNext([]postgres.Cut{postgres.Before, postgres.After}[f.IntN(2)])
		until(f.t, "a COMMIT is cut off", func() bool { return p.Cuts() > n })
	},
	"no notifications": func(f *faults, victim string) {
		f.proxies[victim].Mute(true)
		time.Sleep(f.lease / 2)
		f.proxies[victim].Mute(false)
	},
}

// faults are hosts that are struck while collectors use them.
type faults struct {
	*cluster
	*campaign.Campaign
	names         []string
	told, batches hook            // what a webhook tells, and a destination is sent
	rows          *postgres.Proxy // in front of another destination
	out           string          // its database
	mended        func()          // is done once all hosts are there again; may be nil
}

// epoch is the current start of a host, "" for none.
func (f *faults) epoch(name string) string {
	return f.server.Exec(f.t, f.name(), "select epoch from sluice_store.member where id = '"+f.hosts[name].id+"'")
}

func (c *cluster) name() string { return postgres.NameOf(c.database) }

// gone waits until the others have removed a host.
func (f *faults) gone(name string) {
	until(f.t, "host "+name+" is removed", func() bool { return f.epoch(name) == "" })
}

// ends waits for the end of a host that was removed, which says why.
func (f *faults) ends(name string) {
	m := f.hosts[name]
	select {
	case <-m.over:
	case <-soon(f.t).Done():
		f.t.Fatalf("host %s was removed and goes on", name)
	}
	if m.err == nil {
		f.Torn("host %s was removed and ended as if nothing were", name)
	}
}

// strike lets one fault happen, and mends what it broke.
func (f *faults) strike(kind string, do fault) {
	victim := f.names[f.IntN(len(f.names))]
	f.t.Logf("%s: %s", victim, kind)
	do(f, victim)
	f.Cycle()
	for _, name := range f.names {
		until(f.t, "host "+name+" is there", func() bool {
			select {
			case <-f.hosts[name].over: // also one that a slow machine had others remove
				f.open(name)
			default:
			}
			return f.epoch(name) != ""
		})
	}
	if f.mended != nil {
		f.mended()
		f.mended = nil
	}
}

// A collector runs one connection again and again, each time by some host, and follows each run by
// others.
type collector struct {
	f     *faults
	rand  *rand.Rand
	id    store.ConnectionID
	until int // page
	begun int
	runs  map[store.RunID][]served.Frame
	order []store.RunID
}

// at does something at some host, again at others until one has done it.
func (c *collector) at(do func(ctx context.Context, h *served.Client) error) {
	late := time.After(3 * time.Minute)
	for {
		ctx, cancel := context.WithTimeout(c.f.t.Context(), 10*time.Second)
		name := c.f.names[c.rand.IntN(len(c.f.names))]
		err := do(ctx, c.f.hosts[name].Client)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-late:
			c.f.t.Errorf("%s: no host does what it should, %s not: %v", c.id, name, err)
			return
		}
	}
}

// collect collects some pages more, and follows the run to its end.
func (c *collector) collect(pages int) (end timeline.Type) {
	c.until += pages
	c.at(func(ctx context.Context, h *served.Client) error {
		_, err := h.Do(ctx, "PATCH", "/v1/connections/"+string(c.id),
			map[string]any{"settings": map[string]any{"until": c.until, "pause": 200}}, nil)
		return err
	})
	id := c.begin()
	if id == "" {
		return ""
	}
	c.at(func(ctx context.Context, h *served.Client) error { return c.follow(ctx, h, id) })
	if seen := c.runs[id]; len(seen) > 0 {
		end = timeline.Type(seen[len(seen)-1].Event)
	}
	return end
}

// begin starts one run, whichever host does it.
func (c *collector) begin() (id store.RunID) {
	c.begun++
	key := fmt.Sprintf("%s-%d-%d", c.id, c.begun, c.rand.Uint32())
	c.at(func(ctx context.Context, h *served.Client) (err error) {
		id, err = h.Start(ctx, string(c.id), key)
		return err
	})
	if id == "" {
		return ""
	}
	if _, again := c.runs[id]; again {
		c.f.Torn("run %s is the answer to two starts", id)
	}
	c.order = append(c.order, id)
	c.runs[id] = nil
	return id
}

// errTurn: the stream goes on at another host.
var errTurn = errors.New("another host has a turn")

// follow reads a run's events behind those that were seen, for some time.
func (c *collector) follow(ctx context.Context, h *served.Client, id store.RunID) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second+time.Duration(c.rand.IntN(4000))*time.Millisecond)
	defer cancel()
	after := ""
	if n := len(c.runs[id]); n > 0 {
		after = fmt.Sprint(n - 1)
	}
	s, err := h.Stream(ctx, id, "?streamMode=debug", after)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		frame, err := s.Next()
		seen := c.runs[id]
		over := len(seen) > 0 && timeline.Type(seen[len(seen)-1].Event).Terminal()
		switch {
		case err != nil && over:
			return nil
		case err == io.EOF:
			return errTurn
		case err != nil:
			return err
		case frame.ID != uint64(len(seen)) || over:
			c.f.Torn("run %s: a stream has event %d where %d belongs", id, frame.ID, len(seen))
			return nil
		}
		c.runs[id] = append(seen, frame)
	}
}

// check compares what was seen with what is stored.
func (c *collector) check() {
	f := c.f
	m := f.hosts[f.names[0]]
	for _, id := range c.order {
		events := m.events(id)
		if seen := c.runs[id]; len(events) != len(seen) {
			f.Lost(len(seen)-len(events), "run %s: %d events were seen, %d are stored", id, len(seen), len(events))
		} else {
			for i, e := range events {
				if string(e.Type) != seen[i].Event {
					f.Torn("run %s: event %d was %s and is %s", id, i, seen[i].Event, e.Type)
				}
			}
		}
		f.Checked(len(events))
		m.whole(id)
	}
	started := f.server.Exec(f.t, f.name(),
		fmt.Sprintf("select count(*) from sluice_store.run where connection = '%s'", c.id))
	if started != fmt.Sprint(len(c.order)) {
		f.Torn("%s: %d starts made %s runs", c.id, len(c.order), started)
	}
	c.checkItems(m)
}

// checkItems: every item that was announced is there once, and nothing else. Items never change, so
// their versions have no gap.
func (c *collector) checkItems(m *member) {
	announced := map[string]bool{}
	for _, id := range c.order {
		from, n := 0, 0
		for _, e := range c.runs[id] {
			var d struct {
				Payload struct {
					Count    int
					Stream   string
					Accepted int `json:"records_accepted"`
				}
			}
			if err := json.Unmarshal(e.Data, &d); err != nil {
				c.f.t.Fatal(err)
			}
			switch {
			case e.Event == "run.progress_reported":
				from = d.Payload.Count
			case e.Event == "run.batch_ingested" && d.Payload.Stream == "items":
				n += d.Payload.Accepted
			}
		}
		var keys []string
		for p := from + 1; len(keys) < n; p++ {
			for _, it := range page.Items(p) {
				keys = append(keys, it.ID)
			}
		}
		for _, key := range keys[:n] {
			announced[key] = true
		}
	}
	version := uint64(0)
	for cursor, more := "", true; more; {
		var got struct {
			Data       []export.Line
			NextCursor string
		}
		m.do("GET", fmt.Sprintf("/v1/connections/%s/streams/items/records?limit=1000%s", c.id, cursor), nil, &got)
		for _, r := range got.Data {
			version++
			var key string
			var it page.Item
			if err := errors.Join(json.Unmarshal(r.Key, &key), json.Unmarshal(r.Data, &it)); err != nil {
				c.f.t.Fatal(err)
			}
			if !announced[key] || r.Version != version {
				c.f.Torn("%s of %s is there at version %d, twice or not announced, where %d belongs", key, c.id, r.Version, version)
			}
			i := slices.IndexFunc(page.Items(it.Page), func(x page.Item) bool { return x.ID == key })
			if i < 0 || page.Items(it.Page)[i] != it {
				c.f.Torn("%s of %s:%s", key, c.id, cmp.Diff(page.Items(it.Page), it))
			}
			delete(announced, key)
		}
		cursor, more = "&cursor="+got.NextCursor, got.NextCursor != ""
	}
	c.f.Checked(int(version))
	if len(announced) > 0 {
		c.f.Lost(len(announced), "%d items of %s were announced and are not stored", len(announced), c.id)
	}
}

func (f *faults) collector(id store.ConnectionID) *collector {
	return &collector{f: f, rand: rand.New(rand.NewPCG(f.Uint64(), 0)), id: id, runs: map[store.RunID][]served.Frame{}}
}

// share starts hosts with all that they do: connections that are collected, one that asks, one with a
// schedule, a webhook and destinations.
func (f *faults) share(connections int) (all []*collector, asks *collector) {
	f.lease, f.flags = 4*time.Second, []string{"--webhook-loopback"}
	f.add(f.names...)
	f.server.Exec(f.t, f.name(), postgres.History)
	m := f.hosts[f.names[0]]
	m.install()
	wasm, err := build.Connector("tests/crash/pages")
	if err == nil {
		_, err = m.Install(soon(f.t), wasm)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range []*hook{&f.told, &f.batches} {
		s := httptest.NewServer(h)
		f.t.Cleanup(s.Close)
		if h == &f.told {
			m.do("POST", "/v1/webhooks", map[string]any{"url": s.URL, "events": []string{"run.completed", "run.failed"}}, nil)
			continue
		}
		m.do("POST", "/v1/destinations",
			host.NewDestination{Name: "batches", URL: "webhook:" + s.URL + "/#a-secret-of-some-length-0123456789"}, nil)
	}
	rows := f.server.Database(f.t)
	f.rows, f.out = f.server.Proxy(f.t), postgres.NameOf(rows)
	m.do("POST", "/v1/destinations", host.NewDestination{Name: "rows", URL: f.rows.Through(f.t, rows)}, nil)
	for i := range connections {
		c := f.collector(store.ConnectionID(fmt.Sprintf("pages-%d", i)))
		m.do("POST", "/v1/connections",
			host.NewConnection{ConnectorName: "pages", ConnectionID: string(c.id), Settings: []byte(`{"until": 0}`)}, nil)
		m.do("POST", "/v1/connections/"+string(c.id)+"/grants", map[string]any{"scope": nil, "accessMode": "continuous"}, nil)
		all = append(all, c)
	}
	for _, name := range []store.ConnectionID{"asks", "waits"} {
		m.connect(name, step{"do": "emit", "n": 3}, step{"do": "otp", "text": "Code?"}, step{"do": "emit", "n": 4})
	}
	m.connect("ticks", step{"do": "emit", "n": 1})
	seconds := int64(2)
	m.do("PUT", "/v1/connections/ticks/schedule", host.ScheduleDefinition{IntervalSeconds: &seconds}, nil)
	return all, f.collector("asks")
}

// checkTicks checks that the schedule goes on, and that no tick has the run of another.
func (f *faults) checkTicks(m *member) {
	const begun = "select count(*) from sluice_store.run where connection = 'ticks'"
	was := f.server.Exec(f.t, f.name(), begun)
	until(f.t, "the schedule goes on", func() bool { return f.server.Exec(f.t, f.name(), begun) != was })
	m.do("DELETE", "/v1/connections/ticks/schedule", nil, nil)
	until(f.t, "no run is left",
		func() bool { return f.server.Exec(f.t, f.name(), "select count(*) from sluice_store.lease") == "0" })
	var page struct{ Data []host.Tick }
	m.do("GET", "/v1/connections/ticks/schedule/history?limit=200", nil, &page)
	seen := map[string]bool{}
	for _, k := range page.Data {
		if k.RunID == "" {
			continue
		}
		if seen[k.RunID] {
			f.Torn("run %s is of two ticks", k.RunID)
		}
		seen[k.RunID] = true
		m.whole(store.RunID(k.RunID))
		f.Checked(1)
	}
}

// strikes has hosts struck while they do all that they do, and every run followed by one host after the
// other. What is acknowledged is there, once; a run has one terminal event, as the last; no connection
// has two runs; nothing comes of a host that was removed.
func strikes(t *testing.T, name string, kinds map[string]fault, slice int) {
	f := &faults{Campaign: campaign.New(t, name), names: []string{"a", "b", "c"}}
	f.cluster = start(t, postgres.Start(t, "fsync=off", "full_page_writes=off", "max_connections=300"))
	const pages = 20
	all, asks := f.share(2)
	working, enough := sync.WaitGroup{}, make(chan struct{})
	for _, c := range append(all, asks) {
		working.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
				}
				if c != asks {
					c.collect(pages)
				} else if id := c.begin(); id != "" {
					c.answer(id)
				}
			}
		})
	}
	defer working.Wait()
	stop := sync.OnceFunc(func() { close(enough) })
	defer stop()
	order := slices.Sorted(maps.Keys(kinds))
	total := f.Length(slice, 1)
	for n := 0; n < total && !t.Failed(); n++ {
		if n%len(order) == 0 {
			f.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		f.strike(order[n%len(order)], kinds[order[n%len(order)]])
	}
	stop()
	working.Wait()
	m := f.hosts[f.names[0]]
	f.checkTicks(m)
	for _, c := range all {
		if end := c.collect(pages); end != timeline.RunCompleted {
			t.Errorf("an undisturbed run of %s ended with %s", c.id, end)
		}
		c.check()
		f.checkFed(c)
	}
	asks.checkAsked(m)
	f.checkTold()
	if wrong := f.server.Exec(f.t, f.name(), postgres.Violations); wrong != "" {
		f.Torn("history: %s", wrong)
	}
}

// TestFlakyHosts has hosts killed, stopped and cut off, and PostgreSQL stopped at once.
func TestFlakyHosts(t *testing.T) { strikes(t, "several hosts, one PostgreSQL", kinds, 2) }
