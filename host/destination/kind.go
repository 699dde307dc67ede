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

// A Kind is one sort of destination. Its methods may be called concurrently.
type Kind interface {
	// Scheme begins the URLs of its destinations, such as sqlite: or postgres://.
	Scheme() string
	// Check reads the URL of a destination without reaching for it, and returns how it
	// may be shown: without a password. The error is for the owner and repeats nothing
	// of the URL that may be secret. Files may be anywhere but in dataDir, the host's own;
	// it is "" for none.
	Check(url, dataDir string) (shown string, err error)
	// Open reaches the destination and claims it for the owner: ErrClaimed where it is
	// fed by another, ErrForeign where something that is not ours is in its place.
	Open(ctx context.Context, url string, o Owner) (Sink, error)
}

// A Signer is a kind that signs what it sends with a secret of the URL.
type Signer interface {
	Kind
	// Rotate is the URL with another secret. Until an instant those that it has now sign
	// too. The error is for the owner.
	Rotate(url, secret string, now, until time.Time) (string, error)
}

// A Local kind keeps its destinations on the disk of a machine.
type Local interface {
	Kind
	// Here reports whether what the owner claimed is there, as this host sees the disk. It changes
	// nothing.
	Here(ctx context.Context, url string, o Owner) (bool, error)
}

// An Owner is who feeds a destination. What an earlier start of the same host claimed,
// a later one takes over; from then on the earlier one is ErrFenced.
type Owner struct {
	Host        string // its lasting id; of hosts that share a store, that of the one where it was added
	Destination string // its name there
	TakeOver    bool   // also from another host
	Marks       Marks  // for a kind that has no place for its own
}

// Marks keep in the host how far a destination is that cannot keep it itself.
type Marks interface {
	// Marks are what was kept.
	Marks(ctx context.Context) (map[StreamID][]byte, error)
	// Mark keeps what a kind says of a stream, as JSON, or forgets it with nil.
	Mark(ctx context.Context, id StreamID, data []byte) error
}

// A StreamID names a stream. Since tells apart connections that had one id after the
// other.
type StreamID struct {
	Connection store.ConnectionID `json:"connection"`
	Stream     store.Stream       `json:"stream"`
}

func (id StreamID) String() string { return string(id.Connection) + "/" + string(id.Stream) }

// Table is the name of the stream's table, before it is made unique.
func (id StreamID) Table() string { return string(id.Connection) + "_" + string(id.Stream) }

// A Mode says which versions of a record a table has.
type Mode string

// The modes of a table.
const (
	Current        Mode = "current"         // the newest of each record; a deleted one goes
	CurrentDeleted Mode = "current+deleted" // a deleted one stays, with DeletedColumn
	History        Mode = "history"         // all that were brought in, with ValidFrom and ValidTo
)

// Modes are all modes.
var Modes = []Mode{Current, CurrentDeleted, History}

// A Holding is what a destination has of a stream.
type Holding struct {
	Table string    `json:"table"`
	Mode  Mode      `json:"mode"`
	Since time.Time `json:"since"` // when the connection was made whose records these are
	Mark  uint64    `json:"mark"`  // everything up to this version is there
	Shape *Shape    `json:"shape"`
}

// A Sink writes to one destination. It is used by one goroutine at a time. A method that
// fails has changed nothing, or what it changed is not seen.
type Sink interface {
	// Holdings are what the destination has, by stream.
	Holdings(ctx context.Context) (map[StreamID]Holding, error)
	// Apply brings in a batch and moves the mark, in one step. ErrFenced.
	Apply(ctx context.Context, b *Batch) error
	// Clear removes a stream's table, and that it was there. ErrFenced.
	Clear(ctx context.Context, id StreamID) error
	// Describe replaces the table of streams. ErrFenced.
	Describe(ctx context.Context, streams []Described) error
	// Close lets go of the destination.
	Close() error
}

// A Verbatim sink takes records as they are stored, in Row.Data, and has no columns.
type Verbatim interface {
	Sink
	Verbatim()
}

// A Batch is what changed in one stream between two marks.
type Batch struct {
	ID    StreamID
	To    Holding  // what the destination has afterwards; of a new table too
	From  *Holding // nil for a table that there is not yet
	Rows  []Row    // each key once, in the order of versions
	Files []File   // that Rows name, kept already
}

// A Row is the newest version of a record, or that it was deleted.
type Row struct {
	Key     string
	Version uint64
	At      time.Time // when it was committed
	Deleted bool
	Values  []Value // by Shape.Columns of To; what is missing is NULL
	Rest    string  // "" for NULL
	Data    []byte  // in place of Values and Rest, for a Verbatim sink
}

// Value is that of column i in the type of the column.
func (r *Row) Value(i int, c Column) Value {
	if i >= len(r.Values) {
		return Value{}
	}
	return r.Values[i].As(c.Type)
}

// A Described is what the table of streams says of one.
type Described struct {
	StreamID
	Connector string
	Version   string // of the connector
	Table     string
	Records   uint64    // live ones
	Deleted   uint64    // tombstones
	Mark      uint64    // versions brought in
	LastRun   string    // its id
	EndedAt   time.Time // of the last run
	Partial   bool      // it left something out
	SyncedAt  time.Time
}

// StreamsTable is the table of streams, and MetaTable what the host keeps of its own.
const (
	StreamsTable = "_sluice_streams"
	MetaTable    = "_sluice_meta"
)

// Errors of destinations.
var (
	// ErrFenced: another process feeds the destination by now.
	ErrFenced = errors.New("another process feeds this destination now")
	// ErrClaimed: it belongs to another host.
	ErrClaimed = errors.New("the destination is fed by another host or under another name; --take-over ends that and fills it anew")
	// ErrForeign: something is in the place of a table that no host made.
	ErrForeign = errors.New("there is something of that name that Sluice did not make")
)

// Blocked is an error of one table that the others of its destination do not share, as a
// sentence for the owner.
type Blocked string

func (b Blocked) Error() string { return string(b) }

// CheckPath is Kind.Check for a path of files.
func CheckPath(path, dataDir string) error {
	if path == "" || strings.ContainsAny(path, "?\x00") || !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return errors.New("want a whole path, without dots and doubled slashes")
	}
	for p := path; dataDir != ""; p = filepath.Dir(p) {
		if resolved, err := filepath.EvalSymlinks(p); err == nil && (resolved == dataDir || strings.HasPrefix(resolved, dataDir+string(filepath.Separator))) {
			return errors.New("want a path outside the data directory of the host")
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	return nil
}

// Kinds are all kinds of a build.
type Kinds []Kind

// Of finds the kind of a URL. postgresql:// is another spelling of postgres://.
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
