package api

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// streams lists the streams of a connection.
type streams struct {
	Data []streamInfo `json:"data"`
}

type streamInfo struct {
	Stream           string          `json:"stream"`
	Schema           json.RawMessage `json:"schema"`
	PrimaryKey       []string        `json:"primaryKey"`
	CursorField      string          `json:"cursorField,omitempty"`
	ConsentTimeField string          `json:"consentTimeField,omitempty"`
	Records          uint64          `json:"records"`
	Deleted          uint64          `json:"deleted"`
	LastVersion      uint64          `json:"lastVersion"`
	UpdatedAt        *time.Time      `json:"updatedAt,omitempty"`
	Filterable       []string        `json:"filterable"`
}

// listStreams lists the streams that the pinned manifest declares, in its order, then those that
// only have records of an earlier one.
func (a *recordAPI) listStreams(c *fiber.Ctx) error {
	conn, err := a.find.connection(c)
	if err != nil {
		return err
	}
	manifest, err := a.manifest(c, idOf(conn))
	if err != nil {
		return err
	}
	stats, err := a.records.Streams(web.Context(c), idOf(conn))
	if err != nil {
		return err
	}
	out := streams{Data: []streamInfo{}}
	if manifest != nil {
		for _, spec := range manifest.Streams {
			out.Data = append(out.Data, infoOf(spec))
		}
	}
	for _, st := range stats {
		i := slices.IndexFunc(out.Data, func(s streamInfo) bool { return s.Stream == string(st.Stream) })
		if i < 0 {
			i = len(out.Data)
			out.Data = append(out.Data, infoOf(abi.StreamSpec{Name: string(st.Stream)}))
		}
		s := &out.Data[i]
		s.Records, s.Deleted, s.LastVersion = st.Live, st.Tombstones, st.LastVersion
		if !st.UpdatedAt.IsZero() {
			s.UpdatedAt = &st.UpdatedAt
		}
	}
	return web.JSON(c, 200, out)
}

func infoOf(spec abi.StreamSpec) streamInfo {
	s := streamInfo{Stream: spec.Name, Schema: spec.Schema, PrimaryKey: spec.PrimaryKey, CursorField: spec.CursorField,
		ConsentTimeField: spec.ConsentTimeField, Filterable: filterable(spec)}
	if s.Schema == nil {
		s.Schema = json.RawMessage("null")
	}
	if s.PrimaryKey == nil {
		s.PrimaryKey = []string{}
	}
	return s
}

// filterable returns the fields that a query may compare.
func filterable(spec abi.StreamSpec) []string {
	fields := []string{}
	for _, f := range append(slices.Clone(spec.PrimaryKey), spec.CursorField, spec.ConsentTimeField) {
		if f != "" && !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	return fields
}

// manifest returns the manifest that a connection is pinned to, or nil if it cannot be read.
func (a *recordAPI) manifest(c *fiber.Ctx, id store.ConnectionID) (*abi.Manifest, error) {
	conn, err := a.manifests.Connection(web.Context(c), id)
	if err != nil {
		return nil, err
	}
	m, err := abi.ReadManifest(conn.Manifest)
	if err != nil {
		return nil, nil // records can be read without it
	}
	return m, nil
}

// A recordStream is the stream in a path.
type recordStream struct {
	connection store.ConnectionID
	name       store.Stream
	spec       abi.StreamSpec // zero if only an earlier manifest had the stream
	manifest   *abi.Manifest
	era        string // identifies the connection's lifetime, in which its versions count
}

// recordStream returns the stream in the path. A stream that is not declared and has no records is
// not found.
func (a *recordAPI) recordStream(c *fiber.Ctx) (recordStream, error) {
	var s recordStream
	conn, err := a.find.connection(c)
	if err != nil {
		return s, err
	}
	name, err := web.Param(c, "stream")
	if err != nil {
		return s, err
	}
	s.connection, s.name, s.era = idOf(conn), store.Stream(name), eraOf(conn)
	if s.manifest, err = a.manifest(c, s.connection); err != nil {
		return s, err
	}
	if s.spec = s.manifest.Stream(name); s.spec.Name != "" {
		return s, nil
	}
	stats, err := a.records.Streams(web.Context(c), s.connection)
	if err == nil && !slices.ContainsFunc(stats, func(st store.StreamStats) bool { return st.Stream == s.name }) {
		err = web.NotFound()
	}
	return s, err
}

// eraOf distinguishes a connection from a removed one with the same id, whose versions also counted
// from 1.
func eraOf(c host.Connection) string { return strconv.FormatInt(c.CreatedAt.UnixMilli(), 36) }

// point returns a value for changesSince: a version and its era.
func (s recordStream) point(version uint64) string {
	return strconv.FormatUint(version, 10) + "-" + s.era
}

// since parses a point. "" is the beginning; a point of another era has expired.
func (s recordStream) since(point string) (uint64, error) {
	if point == "" {
		return 0, nil
	}
	text, era, _ := strings.Cut(point, "-")
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, web.Invalid(web.Field{Path: "query.changesSince", Rule: "empty, or a nextChangesSince"})
	}
	if era != s.era {
		return 0, store.ErrCursorExpired
	}
	return version, nil
}
