package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// served is a host as commands read it.
type served struct{ *client.Client }

func (s served) Connectors(ctx context.Context) ([]store.Connector, error) {
	all, err := s.Client.Connectors(ctx)
	var out []store.Connector
	for _, k := range all {
		out = append(out, connectorFrom(k))
	}
	return out, err
}

// connectorFrom is a connector as the store has it.
func connectorFrom(k host.Connector) store.Connector {
	out := store.Connector{
		ID: store.ConnectorID(k.ConnectorID), Name: k.Name, Version: k.Version, DisplayName: k.DisplayName, Digest: store.Digest(k.ModuleDigest),
		Transport: "abi", Manifest: k.Manifest, InstalledAt: k.InstalledAt, Bundled: k.Source.Type == "bundled", Size: k.Size, Conformance: k.Conformance,
	}
	if k.ABI.Family == "stdio" {
		out.Transport = "stdio"
	}
	if key, err := signature.ParseKey(k.Signature.Signer); err == nil && k.Signature.Status == "verified" {
		out.Signer = &store.Signer{KeyID: key.ID(), Key: key.String()}
	}
	for _, w := range k.Warnings {
		out.Warnings = append(out.Warnings, store.Warning{Code: w.Code, Message: w.Message})
	}
	return out
}

func (s served) Connections(ctx context.Context) ([]store.Connection, error) {
	all, err := s.Client.Connections(ctx)
	var out []store.Connection
	for _, k := range all {
		out = append(out, connectionFrom(k))
	}
	return out, err
}

func (s served) Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	if !isID(string(id)) {
		return store.Connection{}, store.ErrNotFound
	}
	k, err := s.Client.Connection(ctx, id)
	if err != nil {
		return store.Connection{}, err
	}
	out := connectionFrom(k)
	if of, err := s.Connector(ctx, k.ConnectorName); err == nil && of.ModuleDigest == k.ModuleDigest {
		out.Manifest = of.Manifest
	}
	return out, nil
}

// isID: what is asked for can be in a path.
func isID(text string) bool {
	return text != "" && len(text) <= 128 && text != "." && text != ".." && filepath.Base(text) == text
}

// connectionFrom is a connection as the store has it, but for its manifest.
func connectionFrom(k host.Connection) store.Connection {
	out := store.Connection{
		ID: store.ConnectionID(k.ConnectionID), Manifest: k.Manifest, ConnectorID: store.ConnectorID(k.ConnectorID), DisplayName: k.DisplayName, Enabled: k.Enabled,
		Grant: grantFrom(k.Grant), Approved: app.ApprovedBy(k.Bindings), Digest: store.Digest(k.ModuleDigest), CreatedAt: k.CreatedAt,
	}
	return out
}

// ownGrant is how the API names a connection without bounds.
const ownGrant = "gra_own"

func grantFrom(g *host.Grant) *store.Grant {
	switch {
	case g == nil: // nobody approved anything yet
		return &store.Grant{AccessMode: "continuous", Status: "invalid"}
	case g.GrantID == ownGrant && g.Status == "active" && g.AccessMode == "continuous" && g.ExpiresAt == nil && string(g.Scope) == "null":
		return nil
	}
	out := &store.Grant{AccessMode: g.AccessMode, Scope: g.Scope, ExpiresAt: g.ExpiresAt, Status: g.Status, Ref: g.GrantID, ApprovedBy: g.ApprovedBy, ApprovedAt: g.ApprovedAt}
	if string(out.Scope) == "null" {
		out.Scope = nil
	}
	if out.Ref == ownGrant {
		out.Ref = ""
	}
	return out
}

// Streams leaves out those that never held anything, as the store does.
func (s served) Streams(ctx context.Context, id store.ConnectionID) ([]store.StreamStats, error) {
	all, err := s.Client.Streams(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []store.StreamStats
	for _, st := range all {
		if st.LastVersion > 0 {
			out = append(out, store.StreamStats{Stream: st.Stream, Live: st.Records, Tombstones: st.Deleted, LastVersion: st.LastVersion})
		}
	}
	slices.SortFunc(out, func(a, b store.StreamStats) int { return strings.Compare(string(a.Stream), string(b.Stream)) })
	return out, nil
}

// Run is a run as the host tells it.
func (s served) Run(ctx context.Context, id store.RunID) (timeline.Snapshot, error) {
	if !isID(string(id)) {
		return timeline.Snapshot{}, store.ErrNotFound
	}
	return s.Client.Run(ctx, id)
}

// Records is a page by version: what changed behind one, without the deletions
// unless they are wanted.
func (s served) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if q.Order != store.ByVersion && q.Order != "" || q.Descending {
		return s.ordered(ctx, q)
	}
	page := store.RecordPage{After: q.After}
	for {
		got, err := s.Changes(ctx, q.Connection, q.Stream, page.After, q.Limit)
		if err != nil {
			return page, err
		}
		for _, r := range got.Data {
			page.After = r.Version
			out, err := recordFrom(r)
			if err != nil {
				return page, err
			}
			if (q.Deleted || !r.Deleted) && (q.Match == nil || q.Match(out)) {
				page.Records = append(page.Records, out)
			}
		}
		if page.More = got.More(); len(page.Records) > 0 || !page.More {
			return page, nil
		}
	}
}

// ordered pages in any order. The place where a page ends is the host's cursor.
func (s served) ordered(ctx context.Context, q store.RecordQuery) (page store.RecordPage, err error) {
	got, err := s.Client.Records(ctx, q.Connection, q.Stream, queryOf(q), q.AfterKey, q.Limit)
	if err != nil {
		return page, err
	}
	for _, r := range got.Data {
		out, err := recordFrom(r)
		if err != nil {
			return page, err
		}
		if q.Match == nil || q.Match(out) {
			page.Records = append(page.Records, out)
		}
	}
	if page.More = got.More(); page.More {
		page.AfterKey = *got.NextCursor
	}
	return page, nil
}

// queryOf is the order of a query, and whether tombstones are in it, as the API
// takes them.
func queryOf(q store.RecordQuery) url.Values {
	out := url.Values{}
	for _, name := range export.Orders {
		if o, descending := export.OrderOf(name); o == cmp.Or(q.Order, store.ByVersion) && descending == q.Descending {
			out.Set("order", name)
		}
	}
	if q.Deleted {
		out.Set("includeDeleted", "true")
	}
	return out
}

// exportReader reads a stream's export page by page.
type exportReader struct {
	served
	next  func() (store.Record, error, bool)
	ended func()
	of    store.Stream // whose export it is
	read  uint64       // records of it
}

func (s served) exporting() *exportReader { return &exportReader{served: s, ended: func() {}} }

func (x *exportReader) stop() { x.ended() }

// Records goes on with the export of a stream; from the beginning on it is a new
// one. What begins in the middle of a stream has no export, and is listed. A place
// is how many records were read.
func (x *exportReader) Records(ctx context.Context, q store.RecordQuery) (page store.RecordPage, err error) {
	if q.After > 0 && (x.next == nil || x.of != q.Stream) {
		return x.served.Records(ctx, q)
	}
	if q.After == 0 {
		x.ended()
		x.of, x.read = q.Stream, 0
		x.next, x.ended = iter.Pull2(x.records(ctx, q))
	}
	for len(page.Records) < q.Limit {
		r, err, ok := x.next()
		if err != nil || !ok {
			return page, err
		}
		if x.read++; q.Match == nil || q.Match(r) {
			page.Records = append(page.Records, r)
		}
	}
	page.After, page.More = x.read, true
	return page, nil
}

func (x *exportReader) records(ctx context.Context, q store.RecordQuery) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		enough := errors.New("enough")
		err := x.Export(ctx, q.Connection, q.Stream, queryOf(q), func(r client.Record) error {
			out, err := recordFrom(r)
			if !yield(out, err) || err != nil {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			yield(store.Record{}, err)
		}
	}
}

// recordFrom is a record as the store has it.
func recordFrom(r client.Record) (store.Record, error) {
	out := store.Record{
		Stream: r.Stream, Data: r.Data, EmittedAt: r.EmittedAt, IngestedAt: r.IngestedAt, Version: r.Version, RunID: r.RunID, Deleted: r.Deleted,
		Key: string(r.Key), Compound: len(r.Key) > 0 && r.Key[0] == '[',
	}
	if out.Compound {
		return out, nil
	}
	if err := json.Unmarshal(r.Key, &out.Key); err != nil {
		return out, fmt.Errorf("read key of a record of %s: %w", r.Stream, err)
	}
	return out, nil
}

func (s served) States(ctx context.Context, id store.ConnectionID, _ store.GrantID) ([]store.State, error) {
	got, err := s.State(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []store.State
	for _, name := range sortedNames(got.Streams) {
		x := got.Streams[name]
		out = append(out, store.State{Stream: store.Stream(name), Cursor: x.Cursor, CommittedAt: x.CommittedAt, RunID: x.RunID})
	}
	return out, nil
}

func (s served) eachEvent(ctx context.Context, run store.RunID, from uint64, do func(timeline.Doc) error) error {
	return s.Events(ctx, run, from, do)
}

func (s served) uninstall(ctx context.Context, name string) error {
	err := s.UninstallConnector(ctx, name, "")
	if client.IsNotFound(err) {
		return usagef("no connector %q is installed; sluice connectors lists them", abi.Clean(name))
	}
	return err
}

func (s served) revoke(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	if err := s.RevokeGrant(ctx, id, ""); err != nil {
		return store.Connection{}, err
	}
	return s.Connection(ctx, id)
}

// narrow replaces the bindings by what is left of them without what is named of each, and
// without the sight of secrets.
func (s served) narrow(ctx context.Context, id store.ConnectionID, of map[string][]string, plain []string) (store.Connection, error) {
	k, err := s.Client.Connection(ctx, id)
	if err != nil {
		return store.Connection{}, err
	}
	left := store.Connection{Approved: app.ApprovedBy(k.Bindings)}
	missing := app.Kinds.Withdraw(&left.Approved, of)
	b := host.Bindings{Interactive: k.Bindings.Interactive, Destinations: k.Bindings.Destinations}
	var gone []string
	b.PlainAcknowledged, gone = binding.Without(k.Bindings.PlainAcknowledged, plain)
	if missing = append(missing, gone...); len(missing) > 0 {
		return store.Connection{}, fmt.Errorf("%w for connection %s: %s", app.ErrNotApproved, id, abi.Clean(strings.Join(missing, ", ")))
	}
	app.Kinds.Show(left, nil, &b)
	if _, err := s.ApproveBindings(ctx, id, b); err != nil {
		return store.Connection{}, err
	}
	return s.Connection(ctx, id)
}

// known is a connection as far as approvals go, the zero Connection if there is none.
func (s served) known(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	c, err := s.Connection(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return store.Connection{}, nil
	}
	return c, err
}

// bindingsOf is the inverse of app.ApprovedBy.
func bindingsOf(c store.Connection) host.Bindings { return merged(host.Bindings{}, c.Approved) }
