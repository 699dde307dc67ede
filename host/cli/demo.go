package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// demoConnectors are the examples that the demo installs.
var demoConnectors = []string{"git", "ical", "stdio", "ask"}

// exampleCommands are what is run from a checkout: sluice demo and conformance.
type exampleCommands struct{ *command }

func (c exampleCommands) demo() *cobra.Command {
	var conformance bool
	var several demoHosts
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a host with the examples, and your dashboard",
		Long: `Builds the example connectors, starts a host on an empty temporary store with them
installed, collects the history of the repository that this directory belongs to,
schedules that, and starts a connector that asks you something. Then it prints the
address of the dashboard with a link that logs you in, and serves until Ctrl-C, which
deletes all of it again. Nothing is asked, and no terminal is needed. It is run from a
checkout of Sluice.

With --hosts 3 it starts three hosts that share the PostgreSQL database of --store, or
of a server that --postgres starts in a temporary directory. It kills the one that has
a run, and shows another one take over.`,
		Example: "  go run . demo\n  go run . demo --conformance\n  go run . demo --hosts 3 --postgres",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if several.count == 1 && !several.own {
				return c.doDemo(cmd.Context(), conformance)
			}
			if conformance {
				return usagef("--conformance goes with a demo of one host")
			}
			return c.doHosts(cmd.Context(), several, cmd.Flags().Changed("store"))
		},
	}
	cmd.Flags().BoolVar(&conformance, "conformance", false, "install the conformance connectors too")
	cmd.Flags().IntVar(&several.count, "hosts", 1, "how many hosts share a database")
	cmd.Flags().BoolVar(&several.own, "postgres", false, "start a PostgreSQL server for them")
	return cmd
}

// demoGrace is how long the runs of a demo may continue after Ctrl-C.
const demoGrace = time.Second

func (c exampleCommands) doDemo(ctx context.Context, conformance bool) (err error) {
	root, err := checkout()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := filepath.Join(dir, "data")
	c.store, c.url = "badger:"+data, ""
	d, err := c.openDemo(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	k := client.Socket(filepath.Join(data, daemon.SocketName))
	defer k.Close()
	if err := c.installDemo(ctx, k, root, dir, conformance); err != nil {
		return err
	}
	login, err := d.Server.LoginLink(ctx)
	if err != nil {
		return err
	}
	if err := c.inviteTo(login, dir); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err := <-ended:
		ended <- nil
		return err
	}
	c.warnf("Stopped, and deleted %s.", dir)
	return nil
}

// openDemo serves the temporary store, on the usual address if that is free.
func (c exampleCommands) openDemo(ctx context.Context) (*daemon.Daemon, error) {
	o := daemon.Options{Host: app.Options{
		Store: c.store, CacheDir: cacheDir(), Prespawn: prespawned,
		Log: slog.New(slog.NewTextHandler(c.errs, &slog.HandlerOptions{Level: slog.LevelError})),
	}}
	o.Service.Grace = demoGrace
	d, err := daemon.Open(ctx, o)
	if errors.Is(err, syscall.EADDRINUSE) {
		o.Server = web.ServerOptions{Listen: []string{"127.0.0.1:0"}}
		d, err = daemon.Open(ctx, o)
	}
	if err != nil {
		return nil, c.explainServeError(err)
	}
	return d, nil
}

// installDemo installs the connectors and starts runs of two of them.
func (c exampleCommands) installDemo(ctx context.Context, k *client.Client, root, dir string, conformance bool) error {
	var sources []string
	for _, name := range demoConnectors {
		sources = append(sources, filepath.Join(root, "examples", name))
	}
	if err := c.installExamples(ctx, k, sources, host.InstallConnector{}); err != nil {
		return err
	}
	if conformance {
		sources, err := conformanceIn(root)
		if err != nil {
			return err
		}
		if err := c.installExamples(ctx, k, sources, host.InstallConnector{Conformance: true}); err != nil {
			return err
		}
		if err := c.printInstalled(sources); err != nil {
			return err
		}
	}
	if err := c.demoCollects(ctx, k, root, dir); err != nil {
		return err
	}
	return c.demoAsks(ctx, k)
}

// demoCollects collects a repository, or a sample table where there is no git, and
// schedules that.
func (c exampleCommands) demoCollects(ctx context.Context, k *client.Client, root, dir string) error {
	connector, id, err := c.demoSource(ctx, k, root, dir)
	if err != nil {
		return err
	}
	started, err := k.StartRun(ctx, client.NewRun{WorkflowID: string(id)})
	if err != nil {
		return err
	}
	if err := c.demoRun(ctx, k, started.RunID, connector); err != nil {
		return err
	}
	every := int64(time.Hour / time.Second)
	if _, _, err := k.PutSchedule(ctx, id, host.ScheduleDefinition{IntervalSeconds: &every}, nil); err != nil {
		return fmt.Errorf("schedule %s: %w", id, err)
	}
	c.warnf("From now on it runs every hour.")
	if connector != "git" || c.json {
		return nil
	}
	return c.demoQuery(ctx, k, id)
}

// demoSource makes the connection of a repository, or of a sample table where there is no git.
func (c exampleCommands) demoSource(ctx context.Context, k *client.Client, root,
	dir string) (connector string, id store.ConnectionID, err error) {
	connector = "git"
	bindings := host.Bindings{}
	repository, err := c.demoRepository(ctx, root, dir)
	if err != nil {
		c.warnf("There is no repository to collect (%v): examples/stdio collects its sample table.", err)
		connector = "stdio"
	} else {
		bindings.Filesystem = &host.FilesystemBinding{Mounts: []host.Mount{{Name: "repo", HostPath: repository, Mode: "ro"}}}
	}
	id, err = c.demoConnection(ctx, k, host.NewConnection{ConnectorName: connector}, bindings)
	return connector, id, err
}

// demoRun shows a run until it is over.
func (c exampleCommands) demoRun(ctx context.Context, k *client.Client, id store.RunID, connector string) error {
	installed, err := loaded(ctx, k, connector)
	if err != nil {
		return err
	}
	w := &runWatcher{c: c.command, k: k, run: id, progress: newProgress(c.screen, installed.Manifest)}
	result, err := w.follow(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !c.json {
		if err := c.printResult(&finishedRun{result: result, logs: w.progress.logs}); err != nil {
			return err
		}
	}
	if code := resultCode(result); code != exitOK {
		return &runFailed{code}
	}
	return nil
}

// demoQuery asks for something that was collected.
func (c exampleCommands) demoQuery(ctx context.Context, k *client.Client, id store.ConnectionID) error {
	sql := fmt.Sprintf("SELECT author_name, count(*) FROM %s.commits GROUP BY 1 ORDER BY 2 DESC LIMIT 3", id)
	found, err := k.Query(ctx, host.Query{SQL: sql, Rows: 3})
	if err != nil {
		return fmt.Errorf("query what was collected: %w", err)
	}
	c.warnf("sluice query '%s'", sql)
	for _, row := range cells(found) {
		c.warnf("  %s", strings.Join(cleanCells(row), "  "))
	}
	return nil
}

// runFailed is the error of a demo whose run failed, which was already printed.
type runFailed struct{ code int }

func (e *runFailed) Error() string { return "the run of the demo did not succeed" }

// demoCommits are those of a repository that is made: enough for a run that can be watched.
const demoCommits = 5000

// demoRepository finds a repository around this directory, or makes one.
func (c exampleCommands) demoRepository(ctx context.Context, root, dir string) (string, error) {
	for at := root; ; at = filepath.Dir(at) {
		if fi, err := os.Stat(filepath.Join(at, ".git")); err == nil && fi.IsDir() {
			return at, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return "", err
	}
	made := filepath.Join(dir, "repository")
	if out, err := exec.CommandContext(ctx, git, "init", "-q", made).CombinedOutput(); err != nil { // #nosec G204 -- fixed arguments
		return "", fmt.Errorf("git init: %w: %s", err, abi.Clean(string(out)))
	}
	var history strings.Builder
	for i := range demoCommits {
		fmt.Fprintf(&history, "commit refs/heads/main\ncommitter Demo <demo@example.org> %d +0000\ndata <<.\nCommit %d of a demo\n.\n", time.Now().Unix()-demoCommits+int64(i), i+1)
	}
	cmd := exec.CommandContext(ctx, git, "-C", made, "fast-import", "--quiet") // #nosec G204 -- fixed arguments
	cmd.Stdin = strings.NewReader(history.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("git fast-import: %w: %s", err, abi.Clean(string(out)))
	}
	if out, err := exec.CommandContext(ctx, git, "-C", made, "symbolic-ref", "HEAD", "refs/heads/main").CombinedOutput(); err != nil { // #nosec G204 -- fixed arguments
		return "", fmt.Errorf("git symbolic-ref: %w: %s", err, abi.Clean(string(out)))
	}
	return made, nil
}

// demoQuestion is what examples/ask asks, for as long as anybody looks.
var demoQuestion = json.RawMessage(`{"ask": [
	{"kind": "otp", "message": "A demo: type any six digits. A real connector would wait for the code that a site sent you.", "timeout_seconds": 86400},
	{"kind": "approval", "message": "And a decision: may it go on?", "timeout_seconds": 86400}]}`)

// demoAsks starts examples/ask and waits for its question.
func (c exampleCommands) demoAsks(ctx context.Context, k *client.Client) error {
	id, err := c.demoConnection(ctx, k, host.NewConnection{ConnectorName: "ask", Settings: demoQuestion}, host.Bindings{})
	if err != nil {
		return err
	}
	started, err := k.StartRun(ctx, client.NewRun{WorkflowID: string(id)})
	if err != nil {
		return err
	}
	asked := errors.New("asked")
	err = k.Follow(ctx, started.RunID, "debug", nil, func(f client.Frame) error {
		if f.Event == string(timeline.RunInteractionRequired) {
			return asked
		}
		return nil
	})
	if err == nil {
		return fmt.Errorf("examples/ask ended without a question; sluice show %s", started.RunID)
	}
	if !errors.Is(err, asked) {
		return err
	}
	c.warnf("examples/ask waits for your answer.")
	return nil
}

// demoConnection makes a connection that may do what it asks for.
func (c exampleCommands) demoConnection(ctx context.Context, k *client.Client, q host.NewConnection,
	b host.Bindings) (store.ConnectionID, error) {
	conn, err := k.CreateConnection(ctx, q)
	if err != nil {
		return "", fmt.Errorf("make connection of %s: %w", q.ConnectorName, err)
	}
	id := store.ConnectionID(conn.ConnectionID)
	if err := c.approval().giveTo(ctx, k, id, b, nil); err != nil {
		return "", fmt.Errorf("grant %s what it asks for: %w", id, err)
	}
	return id, nil
}

// inviteTo prints where everything is, the login link last.
func (c exampleCommands) inviteTo(login web.Login, dir string) error {
	c.warnf("")
	c.warnf("Everything is in %s until you press Ctrl-C; then it is deleted.", dir)
	c.warnf("Commands reach it with --store %s, such as: go run . answer last --store %s", c.store, c.store)
	if c.json {
		return printJSON(c.out, login)
	}
	if login.PlainURL != "" {
		c.warnf("Your dashboard, also at %s:", login.PlainURL)
	}
	_, err := fmt.Fprintf(c.out, "%s\n", login.URL)
	return err
}

// checkout finds the source tree this command is run from.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "examples", demoConnectors[0], "manifest.json")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", usage{errors.New(
				"this builds the examples: run it from a checkout of Sluice, as go run . demo or go run . conformance install")}
		}
	}
}
