package badger

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Defaults.
const (
	defaultQueueBytes = 8 << 20
	defaultFreeStart  = 512 << 20
	defaultFreeIngest = 256 << 20
	defaultFreeStop   = 64 << 20
)

// Options configure a Store. The zero value selects the documented defaults.
type Options struct {
	// Logger receives the messages of the engine and of the store; nil discards them.
	Logger *slog.Logger
	// Small selects the small memory profile.
	Small bool
	// AllowNetworkFS permits a data directory on a network file system.
	AllowNetworkFS bool
	// AcceptLoss opens a store for writing although it has provably lost acknowledged commits. Cursors are those of the
	// last surviving commit, so they are never ahead of the records.
	AcceptLoss bool
	// QueueBytes bounds the commits waiting in Submit; 0 means 8 MiB.
	QueueBytes int64
	// Ballast is the size in bytes of a file that is released when space runs out; 0 means none.
	Ballast int64
	// FreeStart, FreeIngest and FreeStop are the free bytes required to start a run, to accept records, and to keep
	// working at all.
	FreeStart, FreeIngest, FreeStop uint64

	// PerStream makes the store ask for one commit per stream.
	PerStream bool
	// FailState names a stream for which committing a cursor fails.
	FailState store.Stream
	// Fault is called at every named fault point. An error from it counts as a failure of that step. It may end the
	// process.
	Fault func(point string) error
	// FreeSpace replaces the measurement of free bytes in the data directory.
	FreeSpace func(dir string) (uint64, error)
	// Now replaces the clock.
	Now func() time.Time

	memRows     int    // at this many rows in memory an index run is made of them
	bulkRoll    uint64 // size at which the next bulk file is started
	memory      int64  // bytes for the indexes of all streams
	windowBytes int    // sort keys held by one window
	noSync      bool   // the engine does not sync its log; for comparison
}

// Points at which Fault is called.
const (
	FaultBeforeDB       = "commit.before_db"
	FaultAfterDB        = "commit.after_db"
	FaultAfterWitness   = "commit.after_witness"
	FaultBeforeAck      = "commit.before_ack"
	FaultTerminalBefore = "terminal.before"
	FaultTerminalAfter  = "terminal.after"
)

// A profile says how much memory a store may use, in bytes unless noted.
type profile struct {
	memTable, blockCache, table int64 // of the engine
	process                     int64 // see MemoryLimit
	streams                     int64 // indexes of all streams; five million keys in one stream take 25 MB
	pages                       int   // cache of index pages
	windowBytes                 int
	memRows                     int // rows, not bytes
}

var (
	normalProfile = profile{
		memTable: 8 << 20, blockCache: 16 << 20, table: 2 << 20, process: 256 << 20,
		streams: 96 << 20, pages: 24 << 20, windowBytes: 4 << 20, memRows: 64 << 10,
	}
	smallProfile = profile{
		memTable: 4 << 20, blockCache: 8 << 20, table: 512 << 10, process: 72 << 20,
		streams: 32 << 20, pages: 8 << 20, windowBytes: 1 << 20, memRows: 32 << 10,
	}
)

func (o Options) profile() profile {
	if o.Small {
		return smallProfile
	}
	return normalProfile
}

func (o Options) withDefaults() Options {
	p := o.profile()
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.bulkRoll = cmp.Or(o.bulkRoll, bulkRoll)
	o.memRows = cmp.Or(o.memRows, p.memRows)
	o.memory = cmp.Or(o.memory, p.streams)
	o.windowBytes = cmp.Or(o.windowBytes, p.windowBytes)
	o.QueueBytes = cmp.Or(o.QueueBytes, defaultQueueBytes)
	o.FreeStart = cmp.Or(o.FreeStart, defaultFreeStart)
	o.FreeIngest = cmp.Or(o.FreeIngest, defaultFreeIngest)
	o.FreeStop = cmp.Or(o.FreeStop, defaultFreeStop)
	if o.Fault == nil {
		o.Fault = func(string) error { return nil }
	}
	if o.FreeSpace == nil {
		o.FreeSpace = freeSpace
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// OpenURL opens "badger:DIR" or "memory:", either with a query:
//
//	fail_state=STREAM  refuse the cursor of that stream
//	per_stream=BOOL    ask for one commit per stream
//	memory=small       the small memory profile
//	allow_network_fs=BOOL
//
// Parameters in the query override opts. Unknown parameters are an error.
func OpenURL(raw string, opts Options) (*Store, error) {
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || (scheme != "badger" && scheme != "memory") {
		return nil, fmt.Errorf("store %q: want badger:DIR or memory", raw)
	}
	dir, query, _ := strings.Cut(rest, "?")
	if err := applyQuery(query, &opts); err != nil {
		return nil, fmt.Errorf("store %q: %w", raw, err)
	}
	if scheme == "memory" {
		if dir != "" {
			return nil, fmt.Errorf("store %q: memory takes no directory", raw)
		}
		return OpenMemory(opts)
	}
	if dir == "" {
		return nil, fmt.Errorf("store %q: directory missing", raw)
	}
	return Open(dir, opts)
}

func applyQuery(query string, opts *Options) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for name, v := range values {
		value := v[len(v)-1]
		switch name {
		case "fail_state":
			opts.FailState = store.Stream(value)
		case "per_stream":
			opts.PerStream, err = strconv.ParseBool(value)
		case "allow_network_fs":
			opts.AllowNetworkFS, err = strconv.ParseBool(value)
		case "memory":
			opts.Small = value == "small"
			if value != "small" && value != "normal" {
				err = fmt.Errorf("want small or normal, not %q", value)
			}
		default:
			err = fmt.Errorf("unknown parameter")
		}
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return nil
}
