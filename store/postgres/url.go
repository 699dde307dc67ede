package postgres

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Options are the settings in the URL of a store other than those of the server, and some of the host's.
type Options struct {
	Logger *slog.Logger
	// Self is the host that opens the store. An empty Epoch or ID is generated.
	Self store.Member
	// Lease is how long a host that is not heard of counts as alive; 0 means 15 s. It may differ between hosts.
	Lease time.Duration
	// Schema is the schema of the tables; "" means sluice_store.
	Schema string
	// Pool is the maximum number of connections; 0 means 8.
	Pool int
	// StatementTimeout bounds every statement and LockTimeout every wait for a lock; 0 means 30 s and 10 s.
	StatementTimeout, LockTimeout time.Duration
	// OutageWait is how long writes wait for a server that is unavailable; 0 means 1 min.
	OutageWait time.Duration
	// Weak accepts a server that may lose what it acknowledged.
	Weak bool

	// Generation is the version of the protocol between hosts; 0 means that of this build. It is for tests, as are
	// PerStream and FailState; see package badger.
	Generation int
	PerStream  bool
	FailState  store.Stream
}

// Defaults, and bounds of parameters in the URL.
const (
	defaultSchema = "sluice_store"
	defaultPool   = 8
	maxPool       = 64

	defaultLease       = 15 * time.Second
	minLease, maxLease = time.Second, 10 * time.Minute
)

// passed lists the parameters of a URL that are passed on to the driver. Parameters that make it read further settings
// from elsewhere, such as service, are not among them.
var passed = []string{
	"host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword",
	"sslsni", "sslnegotiation", "channel_binding", "require_auth", "connect_timeout", "passfile",
}

const own = "schema, pool, lease, statement_timeout, lock_timeout, outage_wait, durability, data"

// An address is a parsed URL.
type address struct {
	config *pgx.ConnConfig
	shown  string // the URL without secrets
	opts   Options
	data   string // data directory
}

// parse parses a URL. Its errors repeat nothing of it but the names of parameters.
func parse(text string, o Options) (*address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" || u.Opaque != "" || u.Fragment != "" || strings.ContainsRune(text, 0) {
		return nil, errors.New(
			"want postgres://USER@HOST:PORT/DATABASE; characters such as / @ # ? % in a password are written as %2F %40 %23 %3F %25")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("what stands behind the ? of the URL cannot be read")
	}
	server := url.Values{}
	for name, values := range query {
		if len(values) != 1 {
			return nil, fmt.Errorf("%s is set twice", abi.Clean(abi.Cut(name, 40)))
		}
		if slices.Contains(passed, name) {
			server.Set(name, values[0])
		} else if err := o.set(name, values[0]); err != nil {
			return nil, err
		}
	}
	a := &address{opts: o.withDefaults(), shown: shown(u, query), data: query.Get("data")}
	if a.opts.Schema == "information_schema" || len(a.opts.Schema) > 63 || strings.HasPrefix(a.opts.Schema, "pg_") ||
		strings.ContainsAny(a.opts.Schema, "\x00\"\\,") {
		return nil, errors.New("schema wants a name of at most 63 bytes without quotes that does not begin with pg_")
	}
	a.config, err = configure(*u, server, a.opts)
	return a, err
}

// Place returns a name for the store of a URL, which differs between stores and is suitable for a directory, and the
// data directory in the URL, "" if there is none. It does not open the store.
func Place(text string) (name, dir string, err error) {
	a, err := parse(text, Options{})
	if err != nil {
		return "", "", err
	}
	c := a.config
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q", c.Host, c.Port, c.Database, a.opts.Schema))
	return hex.EncodeToString(sum[:6]), a.data, nil
}

// set sets one of Sluice's own parameters.
func (o *Options) set(name, value string) (err error) {
	switch name {
	case "schema":
		o.Schema = value
	case "data": // the data directory, which the application uses
	case "pool":
		if o.Pool, err = strconv.Atoi(value); err == nil && (o.Pool < 2 || o.Pool > maxPool) {
			err = fmt.Errorf("want 2 to %d", maxPool)
		}
	case "lease":
		if o.Lease, err = duration(value); err == nil && (o.Lease < minLease || o.Lease > maxLease) {
			err = fmt.Errorf("want %s to %s", minLease, maxLease)
		}
	case "statement_timeout":
		o.StatementTimeout, err = duration(value)
	case "lock_timeout":
		o.LockTimeout, err = duration(value)
	case "outage_wait":
		o.OutageWait, err = duration(value)
	case "durability":
		o.Weak = value == "weak"
		if value != "weak" && value != "full" {
			err = errors.New("want full or weak")
		}
	case "per_stream":
		o.PerStream, err = strconv.ParseBool(value)
	case "fail_state":
		o.FailState = store.Stream(value)
	default:
		return fmt.Errorf("%q is no parameter of a store; there are %s, %s", abi.Clean(abi.Cut(name, 40)), own,
			strings.Join(passed, ", "))
	}
	if err != nil {
		return fmt.Errorf("parameter %s: %w", name, err)
	}
	return nil
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > 24*time.Hour {
		return 0, errors.New("want a duration such as 30s")
	}
	return d, nil
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Schema == "" {
		o.Schema = defaultSchema
	}
	o.Pool, o.Lease, o.Generation = cmp.Or(o.Pool, defaultPool), cmp.Or(o.Lease, defaultLease),
		cmp.Or(o.Generation, generation)
	o.Self.ID, o.Self.Epoch = cmp.Or(o.Self.ID, "host_"+rand.Text()), cmp.Or(o.Self.Epoch, "boot_"+rand.Text())
	if o.Self.Name == "" {
		o.Self.Name, _ = os.Hostname()
	}
	o.Self.PID = os.Getpid()
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&o.StatementTimeout, 30 * time.Second}, {&o.LockTimeout, 10 * time.Second}, {&o.OutageWait, time.Minute}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	return o
}

// configure returns the driver's configuration for u with the parameters in server.
func configure(u url.URL, server url.Values, o Options) (*pgx.ConnConfig, error) {
	hosts := u.Hostname() + server.Get("host")
	if hosts == "" {
		return nil, errors.New("the URL names no host")
	}
	if strings.Trim(u.Path, "/") == "" && !server.Has("dbname") {
		return nil, errors.New("the URL names no database: postgres://USER@HOST/DATABASE")
	}
	if !local(hosts) {
		if mode := server.Get("sslmode"); mode != "" && mode != "verify-full" {
			return nil, fmt.Errorf(
				"a server that is not on this machine wants sslmode=verify-full; sslrootcert names the authority that signed its certificate")
		}
		server.Set("sslmode", "verify-full")
	}
	u.RawQuery = server.Encode()
	c, err := pgx.ParseConfig(u.String())
	if err != nil { // its text may quote the URL
		return nil, errors.New(
			"a parameter of the URL has a value that it does not take; look at port, sslmode, and the files of sslrootcert, sslcert and sslkey")
	}
	if c.ConnectTimeout <= 0 || c.ConnectTimeout > time.Minute {
		c.ConnectTimeout = 10 * time.Second
	}
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	c.RuntimeParams = map[string]string{ // replaces settings from the environment
		"application_name": application(o.Self.Epoch), "client_encoding": "UTF8",
		"search_path": `"` + o.Schema + `"`, "TimeZone": "UTC", "statement_timeout": milliseconds(o.StatementTimeout),
		"lock_timeout": milliseconds(o.LockTimeout), "idle_in_transaction_session_timeout": "60000",
		"tcp_keepalives_idle": "20", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "4",
	}
	c.StatementCacheCapacity = 128
	return c, nil
}

// application returns the application name for the connections of one epoch of a host.
func application(epoch string) string { return abi.Cut("sluice "+abi.Clean(epoch), 63) }

// local reports whether all hosts, separated by commas, are on this machine.
func local(hosts string) bool {
	for host := range strings.SplitSeq(hosts, ",") {
		ip, err := netip.ParseAddr(host)
		if !filepath.IsAbs(host) && host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// shown returns the URL without secrets.
func shown(u *url.URL, query url.Values) string {
	s := *u
	if s.User != nil {
		s.User = url.User(s.User.Username())
	}
	kept := url.Values{}
	for name, values := range query {
		if name != "password" && name != "sslpassword" {
			kept[name] = values
		}
	}
	s.RawQuery = strings.ReplaceAll(kept.Encode(), "%2F", "/")
	return abi.Clean(s.String())
}
