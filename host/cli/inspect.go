package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

func (c installCommands) inspect() *cobra.Command {
	var manifest, connection string
	cmd := &cobra.Command{
		Use: "inspect CONNECTOR", Short: "Show what a connector is, asks for and would get",
		Long:    "Shows a .wasm file, a source directory or an installed connector without running\nit. With --json: one object.",
		Example: "  sluice inspect mailbox.wasm\n  sluice inspect examples/git --json",
		Args:    args(1, 1, "one connector"),
		RunE: func(cmd *cobra.Command, a []string) error {
			l, conn, err := c.load(cmd.Context(), a[0], manifest, connection)
			if err != nil {
				return err
			}
			sig := signatureAt(l, a[0])
			if c.json {
				out := inspectionOf(l, conn)
				out.Signature = &sig
				return printJSON(c.out, out)
			}
			c.describe(l, conn)
			c.screenOut().line(abi.Clean(sig.text()))
			return nil
		},
	}
	cmd.Flags().StringVar(&manifest, "manifest", "", "manifest `FILE` that wins over the module's own")
	cmd.Flags().StringVar(&connection, "connection", "",
		"show what the connection `ID` was granted (default for an installed one: the connector's name)")
	return cmd
}

// load reads a connector without starting anything, and the connection that it
// is looked at for, if there is one. A name and a connection need the store, a
// file does not.
func (c *command) load(ctx context.Context, arg, manifest,
	connection string) (l *app.Loaded, conn *host.Connection, err error) {
	if !app.IsName(arg) && connection == "" {
		h, err := app.Open(ctx, app.Options{Store: "memory:", NoSandbox: true})
		if err != nil {
			return nil, nil, err
		}
		defer h.Close()
		l, err = h.Load(ctx, arg, manifest)
		return l, nil, err
	}
	err = c.withStoredData(ctx, func(src *client.Client) error {
		if l, err = loadFrom(ctx, src, arg, manifest); err != nil {
			return err
		}
		if connection != "" {
			found, err := findConnection(ctx, src, connection)
			conn = &found
			return err
		}
		found, err := connectionNamed(ctx, src, store.ConnectionID(l.Manifest.Name()))
		if err == nil {
			conn = &found
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	return l, conn, err
}

// loadFrom loads an installed connector, or a file to look at beside a connection.
func loadFrom(ctx context.Context, src *client.Client, arg, manifest string) (*app.Loaded, error) {
	if !app.IsName(arg) {
		h, err := app.Open(ctx, app.Options{Store: "memory:", NoSandbox: true})
		if err != nil {
			return nil, err
		}
		defer h.Close()
		return h.Load(ctx, arg, manifest)
	}
	if manifest != "" {
		return nil, usagef("--manifest is for files: a running host has %s with the manifest it was installed with",
			abi.Clean(arg))
	}
	return loaded(ctx, src, arg)
}

// connectorOf returns an installed connector, or that of a connection, without its bytes.
func connectorOf(ctx context.Context, src *client.Client, name string) (*app.Loaded, error) {
	if conn, err := src.Connection(ctx, store.ConnectionID(name)); err == nil {
		name = conn.ConnectorName
	}
	k, err := connectorNamed(ctx, src, name)
	if err != nil {
		return nil, err
	}
	return loadedOf(k)
}

// loadedOf returns a connector as far as its document says what it is.
func loadedOf(k host.Connector) (*app.Loaded, error) {
	m, err := abi.ReadManifest(k.Manifest)
	if err != nil {
		return nil, fmt.Errorf("read manifest of %s: %w", k.Name, err)
	}
	l := &app.Loaded{
		CheckedModule: &app.CheckedModule{
			Module: sandbox.Module{Digest: k.ModuleDigest, Size: k.Size, Transport: sandbox.Transport(transportOf(k))},
		},
		Manifest: m,
		Connector: store.Connector{ID: store.ConnectorID(k.ConnectorID), Name: k.Name, Version: k.Version,
			Digest: store.Digest(k.ModuleDigest), Signer: signerOf(k)},
	}
	for _, w := range k.Warnings {
		l.Warnings = append(l.Warnings, sandbox.Warning{Code: w.Code, Detail: w.Message})
	}
	return l, nil
}

// loaded returns an installed connector as far as it can be looked at without its
// bytes.
func loaded(ctx context.Context, src *client.Client, name string) (*app.Loaded, error) {
	k, err := connectorNamed(ctx, src, name)
	if err != nil {
		return nil, err
	}
	l, err := loadedOf(k)
	if err != nil {
		return nil, err
	}
	found, err := src.InspectConnector(ctx, host.InstallConnector{Digest: k.ModuleDigest})
	if err != nil {
		return nil, err
	}
	for _, i := range found.Imports {
		module, function, _ := strings.Cut(i, ".")
		l.Module.Imports = append(l.Module.Imports, app.Import{Module: module, Name: function})
	}
	return l, nil
}

// connectorNamed finds an installed connector by its name or its id.
func connectorNamed(ctx context.Context, src *client.Client, name string) (host.Connector, error) {
	all, err := src.Connectors(ctx)
	if err != nil {
		return host.Connector{}, err
	}
	for _, k := range all {
		if k.Name == name || k.ConnectorID == name {
			return k, nil
		}
	}
	if conn, err := src.Connection(ctx, store.ConnectionID(name)); err == nil {
		for _, k := range all {
			if k.ConnectorID == conn.ConnectorID {
				return k, signatureError("connector_not_runnable",
					abi.Clean(name)+" is a connection, and a connector is wanted here; say "+k.Name+", and --connection "+
						abi.Clean(name)+" where a connection is meant")
			}
		}
	}
	return host.Connector{},
		signatureError("connector_not_runnable",
			"no connector "+abi.Clean(name)+" is installed; sluice connectors lists them, sluice install FILE installs one")
}

// An inspection is what sluice inspect --json prints.
type inspection struct {
	ConnectorID string             `json:"connector_id"`
	Name        string             `json:"connector_name"`
	Version     string             `json:"version"`
	DisplayName string             `json:"display_name"`
	Digest      string             `json:"digest"`
	Bytes       int64              `json:"bytes"`
	Transport   string             `json:"transport"`
	Imports     []string           `json:"imports"`
	Able        []string           `json:"able_to"`
	Requests    []request          `json:"requests"`
	Streams     []streamInspection `json:"streams"`
	Settings    []settingLine      `json:"settings"`
	Budgets     map[string]int64   `json:"budgets_ms"`
	Warnings    []warningLine      `json:"warnings"`
	Manifest    json.RawMessage    `json:"manifest"`
	Signature   *signatureLine     `json:"signature,omitempty"` // inspect alone looks for one
}

type streamInspection struct {
	Name       string   `json:"name"`
	Semantics  string   `json:"semantics"`
	PrimaryKey []string `json:"primary_key"`
	Fields     []string `json:"fields"`
	Parents    []string `json:"parent_streams,omitempty"`
}

type settingLine struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Title    string `json:"title,omitempty"`
	Required bool   `json:"required"`
}

type warningLine struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func inspectionOf(l *app.Loaded, conn *host.Connection) inspection {
	m := l.Manifest
	var approved store.Approved
	if conn != nil {
		approved = app.ApprovedBy(conn.Bindings)
	}
	out := inspection{
		ConnectorID: m.ConnectorID, Name: m.Name(), Version: m.Version, DisplayName: m.DisplayName,
		Digest: l.Module.Digest, Bytes: l.Module.Size, Transport: string(l.Module.Transport),
		Imports: []string{}, Able: capabilities(l), Requests: requests(m, approved), Streams: []streamInspection{},
		Settings: []settingLine{}, Budgets: map[string]int64{}, Warnings: warningsOf(l), Manifest: m.Raw,
	}
	for _, i := range l.Module.Imports {
		out.Imports = append(out.Imports, i.String())
	}
	for _, s := range m.Streams {
		out.Streams = append(out.Streams,
			streamInspection{s.Name, s.Semantics, s.PrimaryKey, export.SchemaFields(s), s.ParentStreams})
	}
	if m.Sluice == nil {
		return out
	}
	maps.Copy(out.Budgets, m.Sluice.Budgets)
	if set := m.Sluice.Settings; set != nil {
		for _, s := range set.Properties {
			out.Settings = append(out.Settings, settingLine{s.Name, s.Type, s.Title, slices.Contains(set.Required, s.Name)})
		}
	}
	return out
}

func warningsOf(l *app.Loaded) []warningLine {
	out := []warningLine{}
	for _, w := range l.Warnings {
		out = append(out, warningLine{w.Code, w.Detail})
	}
	return out
}

// describe prints an inspection for people.
func (c installCommands) describe(l *app.Loaded, conn *host.Connection) {
	s, i := c.screenOut(), inspectionOf(l, conn)
	say := func(format string, args ...any) { s.line(abi.Clean(fmt.Sprintf(format, args...))) }
	say("%s %s  (%s)", displayName(l.Manifest), i.Version, i.ConnectorID)
	say("  %s, %s, %s", bytesText(i.Bytes), transportText[i.Transport], i.Digest)
	say("It can, by what it imports:")
	for _, a := range i.Able {
		say("  %s", a)
	}
	say("It asks for:")
	for _, r := range i.Requests {
		say("  %s%s → %s", r.Wants, requiredText[r.Required], r.Granted)
	}
	if len(i.Requests) == 0 {
		say("  nothing")
	}
	if conn != nil {
		for _, w := range app.Added(conn.Manifest, scopeOf(*conn), l.Manifest) {
			say("This version asks for more than connection %s was granted: to %s", conn.ConnectionID, w)
		}
	}
	say("It collects:")
	for _, st := range i.Streams {
		say("  %s (%s): %s", st.Name, strings.ReplaceAll(st.Semantics, "_", " "), strings.Join(st.Fields, ", "))
	}
	c.describeSettings(i)
	for _, w := range i.Warnings {
		say("warning: %s (%s)", w.Detail, w.Code)
	}
}

func (c installCommands) describeSettings(i inspection) {
	s := c.screenOut()
	if len(i.Settings) > 0 {
		s.line("It can be set up with --config:")
	}
	for _, set := range i.Settings {
		s.line(abi.Clean("  " + join(" — ", set.Name+" ("+set.Type+")"+requiredText[set.Required], set.Title)))
	}
	if len(i.Budgets) > 0 {
		s.line("It limits itself to:")
	}
	for _, name := range sortedNames(i.Budgets) {
		s.line(abi.Clean("  " + strings.TrimSuffix(name, "_ms") + " " +
			(time.Duration(i.Budgets[name]) * time.Millisecond).String()))
	}
}

var (
	requiredText  = map[bool]string{true: ", required", false: ""}
	transportText = map[string]string{"abi": "speaks the ABI", "stdio": "speaks JSON lines"}
)

func sortedNames[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }
