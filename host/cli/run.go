package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// runFlags are the flags of sluice run.
type runFlags struct {
	manifest, connection, mode string
	scope, config, state       string
	reset, noPersist           bool
	secrets, answers           []string
	bindings                   bindingFlags
	plain, secretsTo           []string
	yes, noInteractive         bool
	narrow                     bool
	trace                      bool
	require                    string
	out, timeline              string
	record, replay             string
	keepReplay                 bool // keep a replay in the store of --store
	declined                   bool // the owner declined this version
}

// runCommands is sluice run.
type runCommands struct{ *command }

func (c runCommands) run() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run CONNECTOR",
		Short: "Run a connector once, in the terminal",
		Long: `Runs a connector: a .wasm file, a source directory, which is built first, or an
installed name. Progress and questions appear on the terminal; a second run
collects only what is new.

--record keeps what the connector asked of servers and got, without secrets, and
what it was started with. --replay runs it again from that: no network, no
credentials, the same clock and random numbers. A request that is not the next of
the recording ends the run. Directories and answers are given as before; records
go to --out, or to a --store that is named.`,
		Example: `  sluice run examples/git --mount repo=.
  sluice run mailbox.wasm --answer otp=123456 --json
  sluice run feed.wasm --config @feeds.json --record feeds.jsonl
  sluice run feed.wasm --replay feeds.jsonl --out records.jsonl`,
		Args: args(1, 1, "one connector"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.keepReplay = cmd.Flags().Changed("store")
			return c.doRun(cmd.Context(), args[0], f)
		},
	}
	fl := cmd.Flags()
	f.addGrants(cmd)
	fl.StringVar(&f.connection, "connection", "", "connection `ID` (default: the connector's name)")
	fl.StringVar(&f.state, "state", "", "cursors to start from, `JSON|@FILE`")
	fl.BoolVar(&f.reset, "reset-state", false, "start afresh, without stored cursors")
	fl.BoolVar(&f.noPersist, "no-persist-state", false, "hand over and commit no cursors")
	fl.StringVar(&f.mode, "mode", "", "full_refresh or incremental (default: incremental where a state exists)")
	fl.StringVar(&f.out, "out", "",
		"also write the records this run stores: those that are new, changed or deleted, `FILE.{jsonl,csv}`")
	fl.StringVar(&f.timeline, "timeline", "", "write every timeline event as one JSON line to `FILE`")
	fl.BoolVar(&f.trace, "trace", false, "record what the connector does in a browser, as a file to step through")
	fl.StringVar(&f.record, "record", "", "keep what the connector asks for and gets in `FILE`, secrets scrubbed")
	fl.StringVar(&f.replay, "replay", "", "answer the connector from a `FILE` that --record wrote, without network")
	return cmd
}

// addApprovals adds the flags by which an owner gives a connector something.
func (f *runFlags) addApprovals(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.manifest, "manifest", "", "manifest `FILE` that wins over the module's own")
	fl.StringVar(&f.scope, "scope", "", "what to collect, `JSON|@FILE` (default: the manifest's streams)")
	fl.BoolVar(&f.narrow, "narrow", false,
		"let records that are collected again lose stored fields that --scope leaves out")
	f.bindings.add(cmd, func(f binding.Flag) (name, usage string) { return f.Name, f.Usage })
	fl.StringArrayVar(&f.secretsTo, "secret-to", nil, "let a secret go to a server of yours, `NAME=ORIGIN`; repeatable")
	fl.StringArrayVar(&f.plain, "plain", nil, "let the connector see the secret `NAME` itself; repeatable")
	fl.BoolVar(&f.yes, "yes", false,
		"grant what the manifest asks for without asking (directories and sight of secrets must always be named)")
}

// addGrants adds the flags that say what the runs of a connector get.
func (f *runFlags) addGrants(cmd *cobra.Command) {
	f.addApprovals(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "the connection's configuration, `JSON|@FILE`")
	fl.StringArrayVar(&f.secrets, "secret", nil, "give a secret from a file, `NAME=@FILE`; repeatable")
	fl.StringArrayVar(&f.answers, "answer", nil, "answer a question, `KIND=VALUE|@FILE`, in order; repeatable")
	fl.BoolVar(&f.noInteractive, "no-interactive", false, "offer the connector nobody to ask")
	fl.StringVar(&f.require, "require-isolation", "", "refuse to run with less isolation: full or partial")
	fl.Lookup("require-isolation").NoOptDefVal = "full"
}

func (c runCommands) doRun(ctx context.Context, connector string, f *runFlags) error {
	request, err := c.runRequest(f)
	if err != nil {
		return err
	}
	tape, err := f.openRecording()
	if err != nil {
		return err
	}
	defer tape.abandon()
	out, err := openSinks(f)
	if err != nil {
		return err
	}
	defer out.abandon()
	o := app.Options{Require: f.require, Prespawn: 1}
	do := func(k *client.Client) error { return c.runWithClient(ctx, k, connector, request, tape, out, f) }
	if tape.replay == nil || f.keepReplay {
		return c.withClient(ctx, o, do)
	}
	if request.Connector, _, err = c.load(ctx, connector, f.manifest, ""); err != nil {
		return err
	}
	c.store, c.client = "memory:", nil // keep replayed records apart from the stored ones
	return c.withPrivateHost(ctx, o, func(_ *app.Host, k *client.Client) error { return do(k) })
}

// runWithClient starts a run on a host, and shows it until its end.
func (c runCommands) runWithClient(ctx context.Context, to *client.Client, connector string, q app.RunRequest,
	t *recordingFiles, out *sinks, f *runFlags) (err error) {
	if err := c.checkIsolation(ctx, to, f.require); err != nil {
		return err
	}
	if q.Connector == nil {
		done := c.screen.showStatus("reading " + abi.Clean(connector))
		q.Connector, err = c.runConnector(ctx, to, connector, f)
		done()
		if err != nil {
			return err
		}
	}
	c.warn(q.Connector)
	c.warnOther(t, q.Connector)
	if err := checkDeclared(q.Connector.Manifest, q.Secrets); err != nil {
		return err
	}
	q.Replay = t.replay
	id := connectionOf(q)
	if q.Connection == "" && app.IsName(connector) && t.replay == nil {
		id = store.ConnectionID(connector)
	}
	known, err := knownConnection(ctx, to, id)
	if err != nil {
		return err
	}
	if err := c.approval().approve(ctx, to, known, &q, f); err != nil {
		return err
	}
	if q.Trace && c.url == "" {
		if dir, err := app.DataDir(c.store); err == nil && dir == "" {
			return usagef("--trace: the archive is kept in the data directory, and --store memory: has none")
		}
	}
	start, err := c.start(connector, q, t, f)
	if err != nil {
		return err
	}
	result, err := c.follow(ctx, to, id, q, start, out)
	if err != nil {
		return err
	}
	dir, err := app.DataDir(c.store)
	if err != nil {
		return err
	}
	if q.Trace && c.url == "" {
		c.printTrace(browser.TraceFile(dir, string(result.result.RunID)))
	}
	result.about = timeline.Trouble{Again: rerunCommand(connector, f), Unkept: c.url == "" && dir == ""}
	c.code = resultCode(result.result)
	return errors.Join(c.printResult(result), c.saveRecording(ctx, to, t, result.result))
}

// checkIsolation returns an error if the host's isolation is weaker than required.
func (c runCommands) checkIsolation(ctx context.Context, to *client.Client, require string) error {
	if require == "" || c.ownHost {
		return nil // the host was opened with the requirement
	}
	info, err := to.System(ctx)
	if err != nil {
		return err
	}
	var has struct {
		Level string `json:"level"`
	}
	if err := json.Unmarshal(info.Sandbox.Isolation, &has); err != nil {
		return fmt.Errorf("read isolation of the host: %w", err)
	}
	if has.Level == "full" || has.Level == require {
		return nil
	}
	return signatureError("isolation_unavailable",
		"the host isolates guests only "+orWord(abi.Clean(has.Level), "in part")+", and --require-isolation="+require+
			" was given; sluice doctor says what is missing")
}

// runConnector returns a connector as a run is given it: a file with its bytes, an installed one
// as far as it is known.
func (c *command) runConnector(ctx context.Context, to *client.Client, connector string,
	f *runFlags) (*app.Loaded, error) {
	if !app.IsName(connector) {
		l, _, err := c.load(ctx, connector, f.manifest, "")
		return l, err
	}
	if fi, err := os.Stat(connector); err == nil && fi.IsDir() {
		if l, _, err := c.load(ctx, "./"+connector, f.manifest, ""); err == nil {
			if _, err := connectorOf(ctx, to, connector); err == nil {
				return nil, usagef(
					"%s is an installed connector and a directory here; say ./%[1]s for the directory, or run it from elsewhere",
					connector)
			}
			return l, nil
		}
	}
	l, err := connectorOf(ctx, to, connector)
	var no *run.Refusal
	if errors.As(err, &no) && c.url == "" && strings.HasPrefix(no.Message, "no connector ") {
		no.Message = "no connector " + abi.Clean(connector) +
			" is installed, and there is no file or directory of that name; sluice connectors lists what is installed"
	}
	if err != nil || f.manifest == "" {
		return l, err
	}
	raw, err := os.ReadFile(app.Home(f.manifest))
	if err != nil {
		return nil, usagef("--manifest: %w", err)
	}
	if l.Manifest, err = abi.ReadManifest(raw); err != nil {
		return nil, signatureError("manifest_invalid", err.Error())
	}
	return l, nil
}

// start returns the request for a run: its options, and what the owner gives it beyond
// what is stored.
func (c *command) start(connector string, q app.RunRequest, t *recordingFiles, f *runFlags) (client.NewRun, error) {
	inputs := map[string]any{}
	if q.Mode != "" {
		inputs["collectionMode"] = q.Mode
	}
	if q.Scope != nil {
		inputs["scope"] = q.Scope
	}
	if q.NoPersist {
		inputs["persistState"] = false
	}
	if q.Trace {
		inputs["trace"] = true
	}
	if q.Narrow {
		inputs["narrow"] = true
	}
	own, err := overridesOf(q, f)
	if err != nil {
		return client.NewRun{}, err
	}
	own.NotInteractive, own.Record, own.Replay = f.noInteractive || q.Owner == nil && c.ownHost, t.file != nil, t.text
	own.TimeOuts = slices.ContainsFunc(f.answers,
		func(a string) bool { return strings.HasSuffix(a, "="+abi.AnswerTimeout) })
	n := client.NewRun{WorkflowID: connector, Overrides: own}
	if q.Connector.Wasm != nil {
		n.WorkflowID = q.Connector.Manifest.Name()
	}
	if c.url != "" && n.Overrides.Empty() {
		n.Overrides = nil // the key may only start runs
		if q.Connection != "" {
			n.WorkflowID = string(q.Connection)
		}
	}
	n.Inputs, err = json.Marshal(inputs)
	return n, err
}

// overridesOf returns what the flags and the owner give beyond what is stored.
func overridesOf(q app.RunRequest, f *runFlags) (*host.Overrides, error) {
	l := q.Connector
	g := &host.Overrides{
		Module: l.Wasm, Connection: string(q.Connection), Settings: q.Config, State: q.State, ResetState: q.ResetState,
		Bindings: merged(host.Bindings{}, q.Approved), Secrets: q.Secrets, Accepted: q.Accepted,
	}
	if f.manifest != "" {
		g.Manifest = l.Manifest.Raw
	}
	if l.Wasm == nil {
		return g, nil
	}
	var err error
	g.Signature, err = signatureBeside(l)
	return g, err
}

// rerunCommand returns the command that runs a connector again: a file is not run by the name
// of its connection.
func rerunCommand(connector string, f *runFlags) string {
	again := "sluice run " + shellWord(connector)
	if f.connection != "" {
		again += " --connection " + shellWord(f.connection)
	}
	return again
}

// shellWord returns an argument as a shell takes it.
func shellWord(s string) string {
	s = abi.Clean(s)
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("./_:-~", c)
	}
	if s != "" && strings.TrimLeftFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// printTrace prints where the browser trace of a run is, if it has one.
func (c runCommands) printTrace(file string) {
	if _, err := os.Stat(file); err == nil {
		c.warnf("trace: %s; unpack it and open index.html", abi.Clean(file))
	}
}

// A finishedRun is a run that ended, with what its summary needs.
type finishedRun struct {
	result  *run.Result
	changed changes
	logs    []string         // the latest lines of the connector's log
	about   timeline.Trouble // how it was started, for what helps
}

// follow starts a run and shows it while it lasts.
func (c runCommands) follow(ctx context.Context, to *client.Client, id store.ConnectionID, q app.RunRequest,
	start client.NewRun, out *sinks) (*finishedRun, error) {
	before, err := streamStats(ctx, to, id)
	if err != nil {
		return nil, err
	}
	done := c.screen.showStatus("compiling " + displayName(q.Connector.Manifest) + ", once for each version")
	started, err := to.StartRun(ctx, start)
	done()
	if c.approval().confirmNarrowing(err) {
		if start.Inputs, err = withNarrow(start.Inputs); err == nil {
			started, err = to.StartRun(ctx, start)
		}
	}
	if err != nil {
		return nil, err
	}
	w := &runWatcher{c: c.command, k: to, run: started.RunID, owner: q.Owner,
		progress: newProgress(c.screen, q.Connector.Manifest), out: out}
	result, err := w.follow(ctx)
	if err != nil {
		return nil, err
	}
	c.hasResult = true
	if s, ok := q.Owner.(*scripted); ok {
		s.warnUnused()
	}
	ctx = context.WithoutCancel(ctx) // still write the results
	after, err := streamStats(ctx, to, id)
	if err != nil {
		return nil, err
	}
	changed := compare(before, after)
	return &finishedRun{result: result, changed: changed, logs: w.progress.logs},
		out.finish(ctx, to, result, changed.since(result, q.Connector.Manifest))
}

// signatureBeside returns what is beside the file of a module, nil for nothing.
func signatureBeside(l *app.Loaded) ([]byte, error) {
	if l.File == "" {
		return nil, nil
	}
	signed, err := signature.ReadFile(l.File+signature.Suffix, signature.MaxSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return signed, err
}

func withNarrow(inputs json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(inputs, &all); err != nil {
		return nil, err
	}
	all["narrow"] = json.RawMessage("true")
	return json.Marshal(all)
}

// warn prints the warnings of the module's checks.
func (c *command) warn(l *app.Loaded) {
	for _, w := range l.Warnings {
		c.warnf("warning: %s (%s)", abi.Clean(w.Detail), w.Code)
	}
}

// runRequest reads the flags that need no host.
func (c *command) runRequest(f *runFlags) (app.RunRequest, error) {
	q := app.RunRequest{
		Connection: store.ConnectionID(f.connection), Mode: f.mode, Narrow: f.narrow, ResetState: f.reset,
		NoPersist: f.noPersist, Trace: f.trace,
	}
	for _, v := range []struct {
		flag, value string
		into        *json.RawMessage
	}{{"--scope", f.scope, &q.Scope}, {"--config", f.config, &q.Config}, {"--state", f.state, &q.State}} {
		text, err := valueOrFile(v.flag, v.value)
		if err != nil {
			return q, err
		}
		if text == "" {
			continue
		}
		if _, err := strictjson.Parse([]byte(text), strictjson.ParseOptions{AnyKind: true}); err != nil {
			return q, usagef("%s: want JSON, or @FILE with JSON: %w", v.flag, err)
		}
		*v.into = json.RawMessage(text)
	}
	if f.mode != "" && f.mode != abi.FullRefresh && f.mode != abi.Incremental {
		return q, missingf("collection_mode_invalid", "--mode %s: want %s or %s", abi.Clean(f.mode),
			abi.FullRefresh, abi.Incremental)
	}
	if f.reset && f.state != "" {
		return q, usagef("--reset-state and --state contradict each other")
	}
	if f.require != "" && f.require != "full" && f.require != "partial" {
		return q, usagef("--require-isolation=%s: want full or partial", f.require)
	}
	var err error
	if q.Secrets, err = readSecrets(f.secrets); err != nil {
		return q, err
	}
	if q.Owner, err = c.owner(f); err != nil {
		return q, err
	}
	return q, nil
}

// owner returns who answers questions: the script, then the terminal.
func (c *command) owner(f *runFlags) (run.Owner, error) {
	answers, err := parseAnswers(f.answers)
	if err != nil {
		return nil, err
	}
	if f.noInteractive {
		if len(answers) > 0 {
			return nil, usagef("--no-interactive and --answer contradict each other")
		}
		return nil, nil
	}
	var asker run.Owner
	if t, ok := c.terminal(); ok {
		asker = t
	}
	if len(answers) == 0 {
		return asker, nil
	}
	return &scripted{answers: answers, next: asker, warn: c.warnf}, nil
}

// valueOrFile returns the value, or the content of @FILE without the end of its
// last line.
func valueOrFile(flag, v string) (string, error) {
	path, isFile := strings.CutPrefix(v, "@")
	if !isFile {
		return v, nil
	}
	f, err := os.Open(app.Home(path))
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	defer f.Close()
	const most = 64 * abi.MiB
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", usagef("%s: read %s: %w", flag, path, err)
	}
	if len(b) > most {
		return "", usagef("%s: %s is larger than 64 MiB", flag, path)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// readSecrets reads NAME=@FILE; a value is never an argument.
func readSecrets(args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" || !strings.HasPrefix(value, "@") {
			return nil, usagef("--secret: want NAME=@FILE; a value is never given as an argument")
		}
		text, err := valueOrFile("--secret "+name, value)
		if err != nil {
			return nil, err
		}
		if text == "" || len(text) > 16*abi.KiB {
			return nil, usagef("--secret %s: the file must hold 1 byte to 16 KiB", name)
		}
		out[name] = text
	}
	return out, nil
}

// checkDeclared refuses a secret that the manifest does not ask for: it would reach
// nobody, and most likely its name is mistyped.
func checkDeclared(m *abi.Manifest, secrets map[string]string) error {
	var known []string
	for _, f := range run.SecretFields(m) {
		known = append(known, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if !slices.Contains(known, name) {
			return usagef("--secret %s: the connector asks for no secret of that name; it asks for: %s",
				abi.Clean(name), orNone(known))
		}
	}
	return nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
