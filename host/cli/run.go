package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// runFlags are the flags of sluice run.
type runFlags struct {
	manifest, connection, mode string
	scope, config, state       string
	reset, noPersist           bool
	mounts, secrets, answers   []string
	yes, noInteractive         bool
	require                    string
	out, timeline              string
}

func (c *command) run() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run CONNECTOR",
		Short: "Run a connector once, in the terminal",
		Long: `Runs a connector: a .wasm file, a source directory, which is built first, or an
installed name. Progress and questions appear on the terminal; a second run
collects only what is new.`,
		Example: `  sluice run examples/git --mount repo=.
  sluice run mailbox.wasm --answer otp=123456 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.doRun(cmd.Context(), args[0], f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.manifest, "manifest", "", "manifest `FILE` that wins over the module's own")
	fl.StringVar(&f.connection, "connection", "", "connection `ID` (default: the connector's name)")
	fl.StringVar(&f.scope, "scope", "", "what to collect, `JSON|@FILE` (default: the manifest's streams)")
	fl.StringVar(&f.config, "config", "", "the connection's configuration, `JSON|@FILE`")
	fl.StringVar(&f.state, "state", "", "cursors to start from, `JSON|@FILE`")
	fl.BoolVar(&f.reset, "reset-state", false, "start afresh, without stored cursors")
	fl.BoolVar(&f.noPersist, "no-persist-state", false, "hand over and commit no cursors")
	fl.StringVar(&f.mode, "mode", "", "full_refresh or incremental (default: incremental where a state exists)")
	fl.StringArrayVar(&f.mounts, "mount", nil, "let the connector see a directory, `NAME=DIR[:rw]`; repeatable")
	fl.StringArrayVar(&f.secrets, "secret", nil, "give a secret from a file, `NAME=@FILE`; repeatable")
	fl.StringArrayVar(&f.answers, "answer", nil, "answer a question, `KIND=VALUE|@FILE`, in order; repeatable")
	fl.BoolVar(&f.yes, "yes", false, "grant what the manifest asks for without asking (never directories)")
	fl.BoolVar(&f.noInteractive, "no-interactive", false, "offer the connector nobody to ask")
	fl.StringVar(&f.require, "require-isolation", "", "refuse to run with less isolation: full or partial")
	fl.Lookup("require-isolation").NoOptDefVal = "full"
	fl.StringVar(&f.out, "out", "", "also write the collected records, `FILE.{jsonl,csv}`")
	fl.StringVar(&f.timeline, "timeline", "", "write every timeline event as one JSON line to `FILE`")
	return cmd
}

func (c *command) doRun(ctx context.Context, connector string, f *runFlags) (err error) {
	request, err := c.runRequest(f)
	if err != nil {
		return err
	}
	return c.with(ctx, host.Options{Require: f.require}, func(h *host.Host) error {
		if request.Connector, err = h.Load(ctx, connector, f.manifest); err != nil {
			return err
		}
		for _, w := range request.Connector.Warnings {
			fmt.Fprintf(c.errs, "warning: %s (%s)\n", w.Detail, w.Code)
		}
		if request.Approved.Mounts, err = approveMounts(h, request.Connector, f.mounts); err != nil {
			return err
		}
		sinks, err := c.openSinks(f, request.Connector.Manifest)
		if err != nil {
			return err
		}
		request.Watch = sinks.event
		r, err := h.Start(ctx, request)
		if err != nil {
			return err
		}
		result, err := r.Do(ctx)
		if err != nil {
			return err
		}
		if err := sinks.finish(ctx, h, result); err != nil {
			return err
		}
		c.code = resultCode(result)
		return c.printResult(result, sinks)
	})
}

// runRequest reads the flags that need no host.
func (c *command) runRequest(f *runFlags) (host.RunRequest, error) {
	q := host.RunRequest{
		Connection: store.ConnectionID(f.connection), Mode: f.mode, ResetState: f.reset, NoPersist: f.noPersist,
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
		if _, err := abi.Parse([]byte(text), abi.ParseOptions{AnyKind: true}); err != nil {
			return q, usagef("%s: want JSON, or @FILE with JSON: %w", v.flag, err)
		}
		*v.into = json.RawMessage(text)
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

// owner is who answers questions: the script, then the terminal (R22).
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
	if in, ok := c.in.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		asker = terminal{in, c.errs}
	}
	if len(answers) == 0 {
		return asker, nil
	}
	return &scripted{answers: answers, next: asker}, nil
}

// valueOrFile returns the value, or the content of @FILE.
func valueOrFile(flag, v string) (string, error) {
	path, isFile := strings.CutPrefix(v, "@")
	if !isFile {
		return v, nil
	}
	f, err := os.Open(path)
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
	return string(b), nil
}

// readSecrets reads NAME=@FILE; a value is never an argument (S95).
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
		text = strings.TrimRight(text, "\r\n")
		if text == "" || len(text) > 16*abi.KiB {
			return nil, usagef("--secret %s: the file must hold 1 byte to 16 KiB", name)
		}
		out[name] = text
	}
	return out, nil
}

// approveMounts reads NAME=DIR[:rw] and checks the directories (S56).
func approveMounts(h *host.Host, l *host.Loaded, args []string) ([]store.Mount, error) {
	var out []store.Mount
	requested := l.Manifest.Bindings[abi.BindingFilesystem].Mounts
	for _, a := range args {
		name, dir, ok := strings.Cut(a, "=")
		if !ok || name == "" || dir == "" {
			return nil, usagef("--mount %s: want NAME=DIR or NAME=DIR:rw", a)
		}
		dir, writable := strings.CutSuffix(dir, ":rw")
		dir = strings.TrimSuffix(dir, ":ro")
		known := []string{}
		for _, m := range requested {
			known = append(known, m.Name)
		}
		if !contains(known, name) {
			return nil, usagef("--mount %s: the connector asks for no directory of that name; it asks for: %s", name, orNone(known))
		}
		m, err := h.ApproveMount(name, filepath.Clean(dir), writable)
		if err != nil {
			return nil, usage{fmt.Errorf("--mount %s: %w", name, err)}
		}
		out = append(out, m)
	}
	return out, nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
