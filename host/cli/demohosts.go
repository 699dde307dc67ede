package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
	"github.com/sluicehost/sluice/store/postgres/server"
)

// demoHosts are the flags of a demo with several hosts.
type demoHosts struct {
	count int
	own   bool // the demo starts its own database server
}

// Bounds of a demo with several hosts.
const (
	fewestHosts = 2
	mostHosts   = 9
	demoLease   = 5 * time.Second        // after which a silent host is lost
	demoStop    = 10 * time.Second       // for a host to stop
	demoLook    = 200 * time.Millisecond // between polls
)

// A demoHost is one of the hosts: a process of its own.
type demoHost struct {
	*client.Client
	name   string
	login  web.Login
	cmd    *exec.Cmd
	stderr bytes.Buffer // its standard error
}

// A demoCluster are the hosts of a demo that live.
type demoCluster struct {
	exampleCommands
	database *url.URL // with a schema of its own
	dir      string
	hosts    []*demoHost
}

func (c exampleCommands) doHosts(ctx context.Context, f demoHosts, named bool) (err error) {
	switch {
	case f.own && named:
		return usagef("--postgres starts a server of its own, and --store names one: leave one of them out")
	case f.count < fewestHosts || f.count > mostHosts:
		return usagef("--hosts %d: want %d to %d hosts, which share the database of --store postgres://… or of --postgres",
			f.count, fewestHosts, mostHosts)
	}
	c.url = ""
	root, err := checkout()
	if err != nil {
		return err
	}
	d := &demoCluster{exampleCommands: c}
	if d.dir, err = os.MkdirTemp("", "sluice-demo-"); err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	release, err := d.openDatabase(f.own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	defer func() {
		for _, h := range d.hosts {
			h.stop()
		}
	}()
	if err := d.start(ctx, f.count); err != nil {
		return err
	}
	if err := d.show(ctx, root); err != nil {
		return err
	}
	if err := d.invite(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	c.warnf("Stopped, and deleted everything.")
	return nil
}

// openDatabase finds a place for what the hosts share, which release deletes.
func (d *demoCluster) openDatabase(own bool) (release func() error, err error) {
	address := d.store
	var s *server.Server
	if own {
		d.warnf("Starting a PostgreSQL server in a temporary directory. It ends with this demo.")
		if s, err = server.New(); err != nil {
			return nil, fmt.Errorf("start PostgreSQL: %w", err)
		}
		if address, err = s.Create("demo"); err != nil {
			s.Stop()
			return nil, fmt.Errorf("make a database: %w", err)
		}
	}
	a, err := drivers.Parse(address)
	if err != nil || !a.Remote {
		return nil, usagef(
			"hosts share a PostgreSQL database: name it with --store postgres://USER@HOST/DATABASE, or have a server started with --postgres")
	}
	if d.database, err = url.Parse(address); err != nil {
		return nil, usagef("--store is no URL")
	}
	q := d.database.Query()
	if q.Has("schema") || q.Has("data") {
		return nil, usagef("leave schema and data out of --store: a demo has places of its own, and deletes them")
	}
	q.Set("schema", "sluice_demo_"+strings.ToLower(rand.Text()[:8]))
	q.Set("lease", demoLease.String())
	d.database.RawQuery = q.Encode()
	if own {
		return func() error { s.Stop(); return nil }, nil
	}
	return func() error { return drivers.Drop(d.database.String()) }, nil
}

// start starts n hosts; the first makes the tables.
func (d *demoCluster) start(ctx context.Context, n int) error {
	config := filepath.Join(d.dir, "config.yaml")
	if err := os.WriteFile(config, []byte("shortest_interval: 1s\nruns: {grace: 1s}\n"), 0o600); err != nil {
		return err
	}
	d.warnf("Starting %d hosts. They share the database; all else each has for itself.", n)
	for i := range n {
		h, err := d.open(ctx, string(rune('A'+i)), config)
		if err != nil {
			return err
		}
		d.warnf("  host %s is process %d, at %s", h.name, h.cmd.Process.Pid, origin(h.login))
	}
	return nil
}

// origin returns where a host is, as it tells the others.
func origin(l web.Login) string {
	address := cmp.Or(l.PlainURL, l.URL)
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}

// open starts one host, and waits until it serves.
func (d *demoCluster) open(ctx context.Context, name, config string) (*demoHost, error) {
	dir := filepath.Join(d.dir, name)
	address := *d.database
	q := address.Query()
	q.Set("data", dir)
	address.RawQuery = q.Encode()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &demoHost{name: name, Client: client.Socket(filepath.Join(dir, daemon.SocketName))}
	h.cmd = exec.Command(self, "serve", "--config", config, "--listen", "127.0.0.1:0", "--json", "--quiet") // #nosec G204 -- this program
	h.cmd.Env = append(os.Environ(), "SLUICE_STORE="+address.String())
	h.cmd.Stderr = &h.stderr
	detach(h.cmd)
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start host %s: %w", name, err)
	}
	d.hosts = append(d.hosts, h)
	stop := context.AfterFunc(ctx, func() { _ = h.cmd.Process.Kill() })
	defer stop()
	line, err := bufio.NewReader(out).ReadBytes('}')
	if err == nil {
		err = json.Unmarshal(line, &h.login)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		h.stop()
		return nil, fmt.Errorf("host %s did not start: %s", name, abi.Clean(strings.TrimSpace(h.stderr.String())))
	}
	return h, nil
}

// stop ends a host, which may have ended already.
func (h *demoHost) stop() {
	h.Close()
	late := time.AfterFunc(demoStop, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	if h.cmd.Process.Signal(os.Interrupt) != nil {
		_ = h.cmd.Process.Kill()
	}
	_ = h.cmd.Wait() // its exit status does not matter
}

// show collects by schedule, kills the host of a run, and shows how another takes over.
func (d *demoCluster) show(ctx context.Context, root string) error {
	a := d.hosts[0]
	var sources []string
	for _, name := range []string{"git", "stdio"} {
		sources = append(sources, filepath.Join(root, "examples", name))
	}
	if err := d.installExamples(ctx, a.Client, sources, host.InstallConnector{}); err != nil {
		return err
	}
	connector, id, err := d.demoSource(ctx, a.Client, root, d.dir)
	if err != nil {
		return err
	}
	often, tries := int64(2), int64(5)
	if _, _, err := a.PutSchedule(ctx, id, host.ScheduleDefinition{IntervalSeconds: &often, MaxRetries: &tries},
		nil); err != nil {
		return fmt.Errorf("schedule %s: %w", id, err)
	}
	d.warnf("")
	d.warnf("Host A was told to collect %s by schedule. The module and the schedule are in the database, so any of them may do it.", id)
	first, err := d.nextRun(ctx, id, "")
	if err != nil {
		return err
	}
	if err := d.takeOver(ctx, id, first); err != nil {
		return err
	}
	second, err := d.nextRun(ctx, id, first)
	if err != nil {
		return err
	}
	if h := d.holder(ctx, second); h != nil {
		d.warnf("Host %s starts it again as run %s.", h.name, second)
	}
	if err := d.demoRun(ctx, d.hosts[0].Client, second, connector); err != nil {
		return err
	}
	hourly := int64(time.Hour / time.Second)
	if _, _, err := d.hosts[0].PutSchedule(ctx, id, host.ScheduleDefinition{IntervalSeconds: &hourly}, nil); err != nil {
		return fmt.Errorf("schedule %s: %w", id, err)
	}
	d.warnf("")
	d.warnf("Each record is there once: what the first run had stored, the second one stored over. Host %s answers:",
		d.hosts[0].name)
	if connector == "git" && !d.json {
		return d.demoQuery(ctx, d.hosts[0].Client, id)
	}
	return nil
}

// nextRun waits for a run of a connection after one.
func (d *demoCluster) nextRun(ctx context.Context, id store.ConnectionID,
	after store.RunID) (next store.RunID, err error) {
	for next == "" {
		err := d.hosts[0].Runs(ctx, id, func(s timeline.Snapshot) (bool, error) {
			more := s.RunID != after
			if more {
				next = s.RunID
			}
			return more, nil
		})
		if err != nil {
			return "", err
		}
		if next == "" {
			if err := d.rest(ctx); err != nil {
				return "", err
			}
		}
	}
	return next, nil
}

func (*demoCluster) rest(ctx context.Context) error {
	select {
	case <-time.After(demoLook):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// holder returns the host that has a run; nil when none has.
func (d *demoCluster) holder(ctx context.Context, id store.RunID) *demoHost {
	all, err := d.hosts[0].Hosts(ctx)
	if err != nil {
		return nil // the run will tell
	}
	for _, m := range all {
		if !slices.Contains(m.RunIDs, string(id)) {
			continue
		}
		for _, h := range d.hosts {
			if m.URL == origin(h.login) {
				return h
			}
		}
	}
	return nil
}

// takeOver kills the host of a run once some of its records are stored, and shows how
// another host ends the run.
func (d *demoCluster) takeOver(ctx context.Context, connection store.ConnectionID, id store.RunID) error {
	has := d.holder(ctx, id)
	if has == nil {
		has = d.hosts[len(d.hosts)-1] // it is over already
	}
	d.warnf("Host %s had its turn first, and has run %s.", has.name, id)
	d.hosts = slices.DeleteFunc(d.hosts, func(h *demoHost) bool { return h == has })
	defer has.stop()
	k, killed := d.hosts[0], false
	var last *timeline.Snapshot
	err := k.Follow(ctx, id, "debug", nil, func(f client.Frame) error {
		switch {
		case f.Event == string(timeline.RunBatchIngested) && !killed:
			killed = true
			if err := has.cmd.Process.Kill(); err != nil {
				return err
			}
			d.warnf("Its first records are stored. Killing host %s in the middle of it: kill -9 %d", has.name,
				has.cmd.Process.Pid)
			d.warnf("A host that is silent for %s counts as lost. Until then nobody else may have its runs.", demoLease)
		case f.Event == string(timeline.RunFailed) && killed:
			s, err := k.Run(ctx, id)
			last = &s
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if last == nil || last.Error == nil {
		d.warnf("The run was over before host %s could be killed.", has.name)
		_ = has.cmd.Process.Kill() // it ends in either case
		return nil
	}
	d.warnf("Host %s is lost. Another one has ended its run (%s), and %s is free for the next.", has.name,
		last.Error.Code, connection)
	return nil
}

// invite prints where everything is, the login link last.
func (d *demoCluster) invite(ctx context.Context) error {
	all, err := d.hosts[0].Hosts(ctx)
	if err != nil {
		return err
	}
	d.warnf("")
	d.warnf("The hosts that are left, as sluice hosts lists them; press Ctrl-C to end them and to delete everything:")
	for _, m := range all {
		d.warnf("  %s  %d of %d runs  %s", m.URL, m.Runs, m.Capacity, activityText(m))
	}
	login := d.hosts[0].login
	if d.json {
		return printJSON(d.out, login)
	}
	d.warnf("Your dashboard:")
	_, err = fmt.Fprintf(d.out, "%s\n", login.URL)
	return err
}
