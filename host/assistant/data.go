package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

type dataConnection struct {
	Connection  string       `json:"connection"`
	DisplayName string       `json:"displayName,omitempty"`
	Streams     []dataStream `json:"streams"`
}

type dataStream struct {
	Stream    string            `json:"stream"`
	Table     string            `json:"table"` // name in SQL
	Records   json.RawMessage   `json:"records"`
	UpdatedAt string            `json:"updatedAt,omitempty"`
	Columns   map[string]string `json:"columns"` // names and types
	Gaps      *int              `json:"missingDetails,omitempty"`
	Schema    string            `json:"schema"` // URI of the resource
}

// dataCall lists what the assistant can see. Counts come from its copy, so they only include visible records.
func (s *endpoint) dataCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	if err := read(r, &struct{}{}); err != nil {
		return nil, 0, err
	}
	m, done, err := s.borrow(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	tables, err := m.Tables(ctx, nil)
	if err != nil {
		return nil, 0, err
	}
	connections, err := s.view.Connections(ctx)
	if err != nil {
		return nil, 0, err
	}
	out := []dataConnection{}
	for _, c := range connections {
		x := dataConnection{Connection: string(c.ID), DisplayName: c.DisplayName, Streams: []dataStream{}}
		for _, t := range tables {
			if t.ConnectionID != string(c.ID) {
				continue
			}
			st, err := s.dataStream(ctx, m, t)
			if err != nil {
				return nil, 0, err
			}
			x.Streams = append(x.Streams, st)
		}
		out = append(out, x)
	}
	return map[string]any{"notice": notice, "connections": out}, 0, nil
}

func (s *endpoint) dataStream(ctx context.Context, m host.Queries, t host.Table) (dataStream, error) {
	out := dataStream{Stream: t.Stream, Table: t.Name, Records: json.RawMessage("0"), Columns: map[string]string{},
		Schema: schemaURI(t.ConnectionID, t.Stream)}
	for _, c := range t.Columns {
		out.Columns[c.Name] = c.Type
	}
	counted, err := m.Query(ctx, host.Query{SQL: "SELECT count(*), max(_committed_at) FROM " + t.Name, Rows: 1})
	if err != nil {
		return out, err
	}
	if len(counted.Rows) == 1 {
		out.Records = counted.Rows[0][0]
		var newest time.Time // among visible records
		if json.Unmarshal(counted.Rows[0][1], &newest) == nil && !newest.IsZero() {
			out.UpdatedAt = newest.UTC().Format(time.RFC3339)
		}
	}
	out.Gaps, err = s.gaps(ctx, store.ConnectionID(t.ConnectionID), store.Stream(t.Stream))
	return out, err
}

// gaps counts the missing details of a stream, or returns nil unless all of its records are visible, because the count
// would reveal others.
func (s *endpoint) gaps(ctx context.Context, id store.ConnectionID, stream store.Stream) (*int, error) {
	connectionView, err := s.view.connectionView(ctx, id)
	if err != nil {
		return nil, err
	}
	if p := connectionView.streams[string(stream)]; p == nil || !p.Whole() {
		return nil, nil
	}
	grant := store.GrantID("")
	if g := connectionView.connection.Grant; g != nil {
		grant = g.ID
	}
	all, err := s.gateway.o.Store.Gaps(ctx, id, grant, "pending")
	if err != nil {
		return nil, err
	}
	n := 0
	for _, g := range all {
		if g.Stream == stream {
			n++
		}
	}
	return &n, nil
}

// schemaTemplate describes schemas as resources.
var schemaTemplate = &mcp.ResourceTemplate{Name: "schema", Title: "Schema of a stream",
	URITemplate: "sluice://schemas/{connection}/{stream}",
	MIMEType:    "application/schema+json",
	Description: "The JSON Schema of a stream's records, with the fields that you may see."}

// schemaURI returns the URI of a stream's schema, in which all but letters, digits and -._~ is escaped, because the
// names of streams may have any characters.
func schemaURI(connection, stream string) string {
	return "sluice://schemas/" + connection + "/" + strings.ReplaceAll(url.QueryEscape(stream), "+", "%20")
}

// readSchema returns the schema of a stream.
func (s *endpoint) readSchema(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	c := s.entry(ctx, "schema", json.RawMessage(fmt.Sprintf("%q", abi.Cut(r.Params.URI, shownArgument))),
		s.gateway.o.Now())
	var text []byte
	err := s.steadily(ctx, func() (err error) {
		text, err = s.schemaOf(ctx, r.Params.URI)
		return err
	})
	c.Outcome, c.Bytes = "done", len(text)
	if err != nil {
		c.Outcome = "refused"
		c.Code, _ = known(err)
	}
	s.gateway.log.add(c)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: schemaTemplate.MIMEType,
		Text: string(text)}}}, nil
}

func (s *endpoint) schemaOf(ctx context.Context, uri string) ([]byte, error) {
	if err := s.may(ctx); err != nil {
		return nil, err
	}
	if s.def.Terms.Ask {
		return nil, refuse("not_approved", "Schemas are in the answers of the tool data, which asks the owner.")
	}
	connection, escaped, _ := strings.Cut(strings.TrimPrefix(uri, "sluice://schemas/"), "/")
	stream, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, errUnseen
	}
	connectionView, err := s.view.connectionView(ctx, store.ConnectionID(connection))
	if err != nil {
		return nil, err
	}
	p := connectionView.streams[stream]
	if p == nil {
		return nil, fmt.Errorf("stream: %w", store.ErrNotFound)
	}
	return json.Marshal(connectionView.schema(connectionView.manifest.Stream(stream), p))
}

// listSchemas adds the current schemas to the list of resources, including those of streams that an update of the
// connector added.
func (s *endpoint) listSchemas(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, r)
		out, ok := result.(*mcp.ListResourcesResult)
		if err != nil || !ok || s.may(ctx) != nil || s.def.Terms.Ask {
			return result, err
		}
		all, err := s.view.Connections(ctx)
		if err != nil {
			return nil, errors.New("the host cannot list its connections")
		}
		for _, c := range all {
			connectionView, err := s.view.connectionView(ctx, c.ID)
			if err != nil {
				continue
			}
			for _, spec := range connectionView.manifest.Streams {
				if connectionView.streams[spec.Name] != nil {
					out.Resources = append(out.Resources,
						&mcp.Resource{URI: schemaURI(string(c.ID), spec.Name), Name: string(c.ID) + "." + spec.Name,
							MIMEType: schemaTemplate.MIMEType})
				}
			}
		}
		return out, nil
	}
}
