package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// Kind is the kind of destinations at postgres://….
type Kind struct{}

var _ destination.Kind = Kind{}

// Scheme implements destination.Kind.
func (Kind) Scheme() string { return "postgres://" }

// Check implements destination.Kind.
func (Kind) Check(text, dataDir string) (shown string, err error) {
	a, err := parse(text)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if path := a.query.Get(name); path != "" && path != "system" {
			if err := destination.CheckPath(path, dataDir); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return a.shown(), nil
}

// Open implements destination.Kind.
func (Kind) Open(ctx context.Context, text string, o destination.Owner) (destination.Sink, error) {
	a, err := parse(text)
	if err != nil {
		return nil, err
	}
	s := &Sink{address: a, fresh: map[destination.StreamID]bool{}}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.claim(ctx, o); err != nil {
		return nil, errors.Join(s.told(ctx, err), s.Close())
	}
	return s, nil
}

// defaultSchema is the schema if the URL names none.
const defaultSchema = "sluice"

// Default timeout for connecting, and the maximum that the URL can set.
const (
	connectTimeout    = 15 * time.Second
	maxConnectTimeout = 2 * time.Minute
)

// maxMessage bounds a message of the server, in bytes. The longest ones requested contain the names of a thousand
// fields.
const maxMessage = 128 << 20

// settings lists what the query of a URL may set. Parameters that make the driver read further settings from elsewhere,
// such as service, are not among them.
var settings = []string{
	"host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword",
	"sslsni", "sslnegotiation", "channel_binding", "require_auth", "target_session_attrs", "connect_timeout",
	"application_name", "options",
}

// secrets lists the settings that are not shown.
var secrets = []string{"password", "sslpassword"}

// An address is a parsed URL.
type address struct {
	url    url.URL    // without its query
	query  url.Values // without the schema
	schema string
	config *pgconn.Config
}

// parse parses a URL. Its errors repeat nothing of it but the names of settings.
func parse(text string) (*address, error) {
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "postgresql" {
		u.Scheme = "postgres"
	}
	if err != nil || u.Scheme != "postgres" || u.Opaque != "" || u.Fragment != "" || strings.ContainsRune(text, 0) {
		return nil, errors.New(
			"want postgres://USER:PASSWORD@HOST:PORT/DATABASE; characters such as / @ # ? % in a password are written as %2F %40 %23 %3F %25")
	}
	a := &address{url: *u, schema: defaultSchema}
	a.url.RawQuery = ""
	if a.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, errors.New("what stands behind the ? of the URL cannot be read")
	}
	for name, values := range a.query {
		switch {
		case len(values) != 1:
			return nil, fmt.Errorf("%s is set twice", abi.Clean(name))
		case name == "schema":
			a.schema = values[0]
		case !slices.Contains(settings, name):
			return nil, fmt.Errorf("%q is no setting of this URL; there are schema, %s", abi.Clean(cutText(name, 40)),
				strings.Join(settings, ", "))
		}
	}
	a.query.Del("schema")
	if a.schema == "" || len(a.schema) > 63 || strings.HasPrefix(a.schema, "pg_") || a.schema == "information_schema" ||
		strings.ContainsRune(a.schema, 0) {
		return nil, errors.New("schema wants a name of at most 63 bytes that does not begin with pg_")
	}
	_, password := u.User.Password()
	for name, twice := range map[string]bool{"host": u.Host != "", "port": u.Port() != "", "user": u.User.Username() != "",
		"password": password, "dbname": len(u.Path) > 1} {
		if twice && a.query.Has(name) {
			return nil, fmt.Errorf("the URL has %s twice, before the ? and behind it", name)
		}
	}
	if u.Host == "" && a.query.Get("host") == "" {
		return nil, errors.New("the URL names no host")
	}
	if strings.Trim(u.Path, "/") == "" && a.query.Get("dbname") == "" {
		return nil, errors.New("the URL names no database: postgres://USER:PASSWORD@HOST/DATABASE")
	}
	return a, a.configure()
}

func cutText(s string, n int) string {
	return strings.ToValidUTF8(s[:min(n, len(s))], "")
}

// configure makes the driver's configuration.
func (a *address) configure() (err error) {
	query := url.Values{}
	for name, values := range a.query {
		query[name] = values
	}
	local := a.local()
	if !query.Has("sslmode") && !local {
		query.Set("sslmode", "require")
	}
	mode := query.Get("sslmode")
	if !local && !query.Has("require_auth") && (mode == "disable" || mode == "allow" || mode == "prefer") {
		query.Set("require_auth", "!password") // which would be sent in plain text
	}
	u := a.url
	u.RawQuery = query.Encode()
	a.config, err = pgconn.ParseConfigWithOptions(u.String(), pgconn.ParseConfigOptions{ConnStringAllowedKeys: settings})
	if err != nil { // its text may quote the URL
		return errors.New(a.whyNot(query))
	}
	c := a.config
	if c.ConnectTimeout <= 0 || !query.Has("connect_timeout") {
		c.ConnectTimeout = connectTimeout
	}
	c.ConnectTimeout = min(c.ConnectTimeout, maxConnectTimeout)
	c.DialFunc = dial
	c.MaxProtocolMessageBodyLen = maxMessage
	// Settings from the environment are not meant for this URL.
	c.RuntimeParams = map[string]string{"application_name": "sluice", "client_encoding": "UTF8"}
	for _, name := range []string{"application_name", "options"} {
		if v := query.Get(name); v != "" {
			c.RuntimeParams[name] = v
		}
	}
	return nil
}

// local reports whether all servers are on this machine.
func (a *address) local() bool {
	hosts := a.query.Get("host")
	if hosts == "" {
		hosts = a.url.Hostname()
	}
	for host := range strings.SplitSeq(hosts, ",") {
		ip, err := netip.ParseAddr(host)
		if !filepath.IsAbs(host) && host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// whyNot guesses which setting the driver rejected.
func (a *address) whyNot(query url.Values) string {
	if port := query.Get("port") + a.url.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "the port is no number from 1 to 65535"
		}
	}
	modes := []string{"", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"}
	if !slices.Contains(modes, query.Get("sslmode")) {
		return "sslmode is one of " + strings.Join(modes[1:], ", ")
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if query.Has(name) {
			return "the files of sslrootcert, sslcert and sslkey cannot be used: they have to be there, readable and a pair"
		}
	}
	return "a setting of the URL has a value that it does not take"
}

// shown returns the URL without secrets.
func (a *address) shown() string {
	u := a.url
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := url.Values{}
	for name, values := range a.query {
		if !slices.Contains(secrets, name) {
			query[name] = values
		}
	}
	if a.schema != defaultSchema {
		query.Set("schema", a.schema)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "%2F", "/")
	return abi.Clean(u.String())
}

// where returns the server's address for an error.
func (a *address) where() string {
	_, at := pgconn.NetworkAddress(a.config.Host, a.config.Port)
	return abi.Clean(at)
}

// stall is how long a write may make no progress before the connection is closed.
const stall = 2 * time.Minute

// dial connects with keep-alives that detect a dead peer within a minute.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second,
		Interval: 10 * time.Second, Count: 4}}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &watched{c}, nil
}

// A watched connection is closed when a write takes too long, as with a peer that vanished.
type watched struct{ net.Conn }

// Write implements net.Conn.
func (w *watched) Write(b []byte) (int, error) {
	late := time.AfterFunc(stall, func() { _ = w.Close() })
	defer late.Stop()
	return w.Conn.Write(b)
}
