package destination

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Kind is a type of destination. Its methods are safe for concurrent use.
type Kind interface {
	// Scheme returns the beginning of the URLs of its destinations, such as sqlite: or postgres://.
	Scheme() string
	// Check checks the URL of a destination without accessing it and returns how to show it, without secrets. The error
	// is for the owner and repeats no secret part of the URL. Files may be anywhere except in dataDir, the host's own;
	// "" means that there is none.
	Check(url, dataDir string) (shown string, err error)
	// Open opens the destination and claims it for the owner. It returns ErrClaimed if another owner feeds it and
	// ErrForeign if there is something in its place that Sluice did not make.
	Open(ctx context.Context, url string, o Owner) (Sink, error)
}

// A Signer is a kind that signs what it sends with a secret in the URL.
type Signer interface {
	Kind
	// Rotate returns the URL with a new secret. The present ones keep signing, too, until the given time. The error is
	// for the owner.
	Rotate(url, secret string, now, until time.Time) (string, error)
}

// A Local kind has its destinations on a disk.
type Local interface {
	Kind
	// Here reports whether this host sees a destination that the owner has claimed. It changes nothing.
	Here(ctx context.Context, url string, o Owner) (bool, error)
}

// An Owner identifies who feeds a destination. A later start of the same host takes over from an earlier one, which
// then gets ErrFenced.
type Owner struct {
	Host        string // lasting id; with a shared store, that of the host that added the destination
	Destination string // its name there
	TakeOver    bool   // claim it from another owner, too
	Marks       Marks  // for a kind that cannot store its own
}

// Marks stores, in the host, the progress of a destination that cannot store it itself.
type Marks interface {
	// Marks returns what was stored.
	Marks(ctx context.Context) (map[StreamID][]byte, error)
	// Mark stores a kind's JSON for a stream, or deletes it if data is nil.
	Mark(ctx context.Context, id StreamID, data []byte) error
}

// A StreamID names a stream. Holding.Since distinguishes successive connections with the same id.
type StreamID struct {
	Connection store.ConnectionID `json:"connection"`
	Stream     store.Stream       `json:"stream"`
}

func (id StreamID) String() string { return string(id.Connection) + "/" + string(id.Stream) }

// Table returns the name of the stream's table before it is made unique.
func (id StreamID) Table() string { return string(id.Connection) + "_" + string(id.Stream) }

// A Mode says which versions of a record a table contains.
type Mode string

// The modes of a table.
const (
	Current        Mode = "current"         // the newest of each record; deleted ones are removed
	CurrentDeleted Mode = "current+deleted" // deleted ones stay, with DeletedColumn set
	History        Mode = "history"         // all that were brought in, with ValidFrom and ValidTo
)

// Modes lists all modes.
var Modes = []Mode{Current, CurrentDeleted, History}

// A Holding is what a destination has of a stream.
type Holding struct {
	Table string    `json:"table"`
	Mode  Mode      `json:"mode"`
	Since time.Time `json:"since"` // when the records' connection was created
	Mark  uint64    `json:"mark"`  // all changes up to this version are included
	Shape *Shape    `json:"shape"`
}

// A Sink writes to one destination. It is not safe for concurrent use. A method that fails has no visible effect.
type Sink interface {
	// Holdings returns what the destination has, by stream.
	Holdings(ctx context.Context) (map[StreamID]Holding, error)
	// Apply writes a batch and advances the mark in one atomic step. It may return ErrFenced.
	Apply(ctx context.Context, b *Batch) error
	// Clear removes a stream's table and mark. It may return ErrFenced.
	Clear(ctx context.Context, id StreamID) error
	// Describe replaces the table of streams. It may return ErrFenced.
	Describe(ctx context.Context, streams []Described) error
	// Close releases the destination.
	Close() error
}

// A Verbatim sink takes records as they are stored, in Row.Data, and has no columns.
type Verbatim interface {
	Sink
	Verbatim()
}

// A Batch contains the changes of one stream between two marks.
type Batch struct {
	ID    StreamID
	To    Holding  // afterwards; Apply sets Table
	From  *Holding // nil if there is no table yet
	Rows  []Row    // each key once, ordered by version
	New   bool     // the table has none of their keys
	Files []File   // named in Rows and already stored
}

// A Row is the newest version of a record, which may be its deletion.
type Row struct {
	Key     string
	Version uint64
	At      time.Time // when it was committed
	Deleted bool
	Values  []Value // by To.Shape.Columns; missing ones are NULL
	Rest    string  // "" for NULL
	Data    []byte  // instead of Values and Rest, for a Verbatim sink
}

// Value returns the value of column i in the column's type.
func (r *Row) Value(i int, c Column) Value {
	if i >= len(r.Values) {
		return Value{}
	}
	return r.Values[i].As(c.Type)
}

// A Described is a row of the table of streams.
type Described struct {
	StreamID
	Connector string
	Version   string // of the connector
	Table     string
	Records   uint64    // live ones
	Deleted   uint64    // tombstones
	Mark      uint64    // version up to which changes were brought in
	LastRun   string    // its id
	EndedAt   time.Time // of the last run
	Partial   bool      // the last run left something out
	SyncedAt  time.Time
}

// StreamsTable is the table of streams, and MetaTable the host's own.
const (
	StreamsTable = "_sluice_streams"
	MetaTable    = "_sluice_meta"
)

// Errors of destinations.
var (
	// ErrFenced reports that another process now feeds the destination.
	ErrFenced = errors.New("another process feeds this destination now")
	// ErrClaimed reports that the destination belongs to another owner.
	ErrClaimed = errors.New(
		"the destination is fed by another host or under another name; --take-over ends that and fills it anew")
	// ErrForeign reports that something Sluice did not make is in the place of a table.
	ErrForeign = errors.New("there is something of that name that Sluice did not make")
)

// Blocked is an error that concerns one table and not the others of its destination, as a sentence for the owner.
type Blocked string

func (b Blocked) Error() string { return string(b) }

// CheckPath implements Kind.Check for the path of a file or directory.
func CheckPath(path, dataDir string) error {
	if path == "" || strings.ContainsAny(path, "?\x00") || !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return errors.New("want a whole path, without dots and doubled slashes")
	}
	for p := path; dataDir != ""; p = filepath.Dir(p) {
		if resolved, err := filepath.EvalSymlinks(p); err == nil &&
			(resolved == dataDir || strings.HasPrefix(resolved, dataDir+string(filepath.Separator))) {
			return errors.New("want a path outside the data directory of the host")
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	return nil
}

// Kinds lists the kinds of a build.
type Kinds []Kind

// Of returns the kind of a URL. postgresql:// is another spelling of postgres://.
func (ks Kinds) Of(url string) (Kind, error) {
	url = strings.Replace(url, "postgresql://", "postgres://", 1)
	i := slices.IndexFunc(ks, func(k Kind) bool { return strings.HasPrefix(url, k.Scheme()) })
	if i < 0 {
		var schemes []string
		for _, k := range ks {
			schemes = append(schemes, k.Scheme())
		}
		return nil, fmt.Errorf("want a URL that begins with one of %s", strings.Join(schemes, ", "))
	}
	return ks[i], nil
}
