//go:build unix

// Package cluster tests several hosts on one PostgreSQL: each is a process of its own, as is the
// server, and any of them is killed, stopped or cut off.
package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/cli"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// asCLI makes this test binary act as the command line.
const asCLI = "SLUICE_CLUSTER_CLI"

// TestMain also runs the command line and its workers.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	if os.Getenv(asCLI) != "" {
		os.Exit(cli.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// lease is how long a host that is not heard of counts as alive.
const lease = 8 * time.Second

// A cluster is hosts that share a database.
type cluster struct {
	t        *testing.T
	server   *postgres.Server
	database string // URL
	config   string // file
	lease    time.Duration
	program  string            // "" for this one
	env      map[string]string // a variable of a host, by its name
	flags    []string          // of all hosts
	hosts    map[string]*member
	first    *member                    // is admitted by itself
	proxies  map[string]*postgres.Proxy // between each host and the server
}

// start starts hosts on a database of their own.
func start(t *testing.T, server *postgres.Server, names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, server: server, database: server.Database(t),
		config: filepath.Join(t.TempDir(), "config.yaml"), lease: lease,
		hosts: map[string]*member{}, proxies: map[string]*postgres.Proxy{}}
	if err := os.WriteFile(c.config, []byte("shortest_interval: 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.add(names...)
	return c
}

// add starts hosts, each behind a proxy, and has the first that there is admit them to the vault.
func (c *cluster) add(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.join(name)
	}
}

// join adds one host, with more flags.
func (c *cluster) join(name string, flags ...string) *member {
	c.t.Helper()
	c.proxies[name] = c.server.Proxy(c.t)
	m := c.open(name, flags...)
	if c.first == nil {
		c.first = m
	} else {
		c.admit(c.first, m)
	}
	until(c.t, name+" is admitted", func() bool {
		for _, h := range m.list() {
			if h.Self {
				return h.Admitted
			}
		}
		return false
	})
	return m
}

// admit admits a host to the vault at another one, as an owner does.
func (c *cluster) admit(at, m *member) {
	c.t.Helper()
	var code struct {
		Code string `json:"code"`
	}
	m.do("GET", "/v1/hosts/code", nil, &code)
	at.HTTP.CloseIdleConnections() // it may have closed them
	at.do("POST", "/v1/hosts/"+m.id+"/admit", code, nil)
}

// A member is one host as a process of its own.
type member struct {
	*served.Client
	t     *testing.T
	dir   string
	store string // its URL
	cmd   *exec.Cmd
	over  chan struct{} // closed once the process is
	err   error         // how it ended
	said  *os.File      // its log
	id    string
	login web.Login // that its start printed
}

// open starts a host, with the data directory that it had if it was started before, and with more flags.
func (c *cluster) open(name string, flags ...string) *member {
	c.t.Helper()
	m := c.hosts[name]
	if m == nil {
		dir, err := served.TempDir()
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { os.RemoveAll(dir) })
		m = &member{t: c.t, dir: dir, Client: served.Socket(filepath.Join(dir, daemon.SocketName))}
		c.hosts[name] = m
		if m.said, err = os.CreateTemp(c.t.TempDir(), name+"-*.log"); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { m.kill(); m.tell(name) })
	}
	u, err := url.Parse(c.proxies[name].Through(c.t, c.database))
	if err != nil {
		c.t.Fatal(err)
	}
	q := u.Query()
	q.Set("data", m.dir)
	q.Set("durability", "weak")
	q.Set("lease", c.lease.String())
	u.RawQuery = q.Encode()
	m.store = u.String()
	cache, err := build.CacheDir()
	if err != nil {
		c.t.Fatal(err)
	}
	m.cmd = exec.Command(cmp.Or(c.program, os.Args[0]),
		append([]string{"serve", "--config", c.config, "--listen", "127.0.0.1:0", "--store", m.store, "--json", "--quiet"},
			slices.Concat(c.flags, flags)...)...)
	m.cmd.Env = append(os.Environ(), asCLI+"=1", "SLUICE_CACHE="+cache, c.env[name])
	m.cmd.Stderr = m.said
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var login web.Login
	line, err := bufio.NewReader(out).ReadBytes('}')
	if err == nil {
		err = json.Unmarshal(line, &login)
	}
	if err != nil {
		c.t.Fatalf("host %s did not start: %v", name, err)
	}
	m.login = login
	m.over = make(chan struct{})
	go func() {
		m.err = m.cmd.Wait()
		close(m.over)
	}()
	for _, h := range m.list() {
		if h.Self {
			m.id = h.HostID
		}
	}
	return m
}

// tell shows the log of a host whose test failed.
func (m *member) tell(name string) {
	if text, err := os.ReadFile(m.said.Name()); err == nil && m.t.Failed() {
		m.t.Logf("host %s said\n%s", name, text)
	}
	_ = m.said.Close()
}

// kill ends the process at once, wherever it is.
func (m *member) kill() {
	_ = m.cmd.Process.Kill() // it may be over
	if m.over != nil {       // it had started
		<-m.over
	}
	m.HTTP.CloseIdleConnections()
}

// signal stops the process where it is, or lets it go on.
func (m *member) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// list are the hosts as this one knows them.
func (m *member) list() []host.Member {
	m.t.Helper()
	var page struct{ Data []host.Member }
	m.do("GET", "/v1/hosts", nil, &page)
	return page.Data
}

// performer is the host that has an active run, "" for none.
func (m *member) performer(id store.RunID) string {
	m.t.Helper()
	for _, h := range m.list() {
		if slices.Contains(h.RunIDs, string(id)) {
			return h.HostID
		}
	}
	return ""
}

// do fails the test where a request fails.
func (m *member) do(method, path string, body, out any, headers ...string) {
	m.t.Helper()
	if _, err := m.Do(soon(m.t), method, path, body, out, headers...); err != nil {
		m.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// wait waits until right accepts the snapshot of a run.
func (m *member) wait(id store.RunID, right func(timeline.Snapshot) bool) timeline.Snapshot {
	m.t.Helper()
	s, err := m.Wait(soon(m.t), id, right)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// begin starts a run of a connection.
func (m *member) begin(connection string) store.RunID {
	m.t.Helper()
	id, err := m.Start(soon(m.t), connection, "")
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

// install installs the connector that does what the settings of its connections say.
func (m *member) install() {
	m.t.Helper()
	wasm, err := build.Connector("tests/e2e/guest")
	if err == nil {
		_, err = m.Install(soon(m.t), wasm)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// step is one entry of the settings of a connection; see tests/e2e/guest.
type step map[string]any

func (m *member) connect(id store.ConnectionID, steps ...step) {
	m.t.Helper()
	if err := m.Connect(soon(m.t), "steps", id, map[string]any{"steps": steps}); err != nil {
		m.t.Fatal(err)
	}
}

// soon ends a call that hangs. On a busy machine it may take minutes to compile a module.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// until waits until something is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for ctx := soon(t); !so(); {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

type event struct {
	Type     timeline.Type
	Sequence uint64
}

func (m *member) events(id store.RunID) (all []event) {
	m.t.Helper()
	before := ""
	for { // the newest come first
		var page struct{ Events []event }
		m.do("GET", fmt.Sprintf("/v1/runs/%s/events?limit=1000%s", id, before), nil, &page, "Accept", "application/json")
		if all = append(page.Events, all...); len(page.Events) == 0 || all[0].Sequence == 0 {
			return all
		}
		before = fmt.Sprintf("&before=%d", all[0].Sequence)
	}
}

// whole checks that a run's timeline has no gap and one terminal event, which is the last.
func (m *member) whole(id store.RunID) (end timeline.Type) {
	m.t.Helper()
	all := m.events(id)
	for i, e := range all {
		if e.Sequence != uint64(i) {
			m.t.Errorf("run %s has event %d where %d belongs", id, e.Sequence, i)
		}
		if e.Type.Terminal() != (i == len(all)-1) {
			m.t.Errorf("run %s has %s at %d of %d", id, e.Type, i, len(all))
		}
		end = e.Type
	}
	return end
}
