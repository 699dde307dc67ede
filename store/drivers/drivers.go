// Package drivers is the only place that names the drivers of store.Store. It opens a store
// by its address.
package drivers

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
	"github.com/sluicehost/sluice/store/postgres"
)

// A driver opens the addresses of one scheme.
type driver struct {
	scheme string
	local  bool // the address names a directory
	remote bool // the store is a server's
	open   func(address string, o Options) (store.Store, error)
}

var all = []driver{
	{scheme: "badger", local: true, open: openBadger},
	{scheme: "memory", open: openBadger},
	{scheme: "postgres", remote: true, open: openPostgres},
}

// ErrAddress describes the valid addresses.
var ErrAddress = errors.New("want memory:, badger:DIR or postgres://USER@HOST/DATABASE")

// refused is an error in the URL of a server. It is an ErrAddress.
type refused struct{ error }

func (refused) Is(target error) bool { return target == ErrAddress }

// Options are options of all drivers. The zero value is valid.
type Options struct {
	// Logger receives the driver's messages; nil discards them.
	Logger *slog.Logger
	// Self is this host, for a shared store. An empty ID or Epoch is generated.
	Self store.Member
	// AllowNetworkFS permits a data directory on a network file system.
	AllowNetworkFS bool
	// AcceptLoss opens for writing a store that has provably lost commits.
	AcceptLoss bool
	// Ballast is the disk space to reserve, in bytes. It is released when the disk is full,
	// so that the store can be closed properly.
	Ballast int64
	// Now replaces the clock.
	Now func() time.Time
}

// Open opens the store at an address, creating it if needed.
func Open(address string, o Options) (store.Store, error) {
	_, d, err := parse(address)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", Shown(address), err)
	}
	return d.open(address, o)
}

// An Address is the parsed address of a store: SCHEME:DIR?QUERY, or the URL of a server.
type Address struct {
	Scheme string
	Dir    string // "" if there is no directory
	Query  string
	// Remote says that a server has the store. Name is then a name for it that is also
	// valid for a directory, and Dir the value of the parameter data.
	Remote bool
	Name   string

	url string // of a server
}

// Parse parses an address, or returns ErrAddress.
func Parse(address string) (Address, error) {
	a, _, err := parse(address)
	return a, err
}

func parse(address string) (Address, driver, error) {
	var a Address
	scheme, rest, ok := strings.Cut(address, ":")
	a.Scheme = scheme
	for _, d := range all {
		if !ok || d.scheme != a.Scheme {
			continue
		}
		if d.remote {
			a.Remote, a.url = true, address
			var err error
			if a.Name, a.Dir, err = postgres.Place(address); err != nil {
				return Address{}, driver{}, refused{err}
			}
			return a, d, nil
		}
		if a.Dir, a.Query, _ = strings.Cut(rest, "?"); d.local == (a.Dir != "") {
			return a, d, nil
		}
	}
	return Address{}, driver{}, ErrAddress
}

func (a Address) String() string {
	if a.Remote {
		return a.url
	}
	address := a.Scheme + ":" + a.Dir
	if a.Query != "" {
		address += "?" + a.Query
	}
	return address
}

// Shown returns an address without passwords, even if the address is invalid.
func Shown(address string) string {
	scheme, rest, ok := strings.Cut(address, ":")
	if !ok || strings.Contains(scheme, "/") || scheme == "badger" || scheme == "memory" {
		return address
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, _, _ := strings.Cut(rest[:at], ":")
		rest = user + rest[at:]
	}
	rest = untilPassword(rest)
	server, query, asked := strings.Cut(rest, "?")
	if !asked {
		return scheme + ":" + rest
	}
	parameters := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, p := range parameters {
		name, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(name); err != nil || strings.HasSuffix(strings.ToLower(plain), "password") {
			parameters[i] = name + "=…"
		}
	}
	return scheme + ":" + server + "?" + strings.Join(parameters, "&")
}

// untilPassword cuts rest before an invalid port, which may be a password whose @ was
// forgotten.
func untilPassword(rest string) string {
	start := strings.LastIndexAny(rest, "@]") + 1
	host, port, ok := strings.Cut(rest[start:], ":")
	if end := strings.IndexAny(port, "/?"); end >= 0 {
		port = port[:end]
	}
	if _, err := strconv.ParseUint(port, 10, 16); !ok || err == nil || port == "" || strings.ContainsRune(host, '?') {
		return rest
	}
	return rest[:start] + host + ":…"
}

func openBadger(address string, o Options) (store.Store, error) {
	s, err := badger.OpenURL(address, badger.Options{
		Logger: o.Logger, AllowNetworkFS: o.AllowNetworkFS, AcceptLoss: o.AcceptLoss, Ballast: o.Ballast, Now: o.Now,
	})
	if err != nil {
		return nil, err // avoid a typed nil in the interface
	}
	return s, nil
}

// Empty deletes all content of a store. Nobody may have it open.
func Empty(address string) error {
	a, err := Parse(address)
	switch {
	case err != nil:
		return err
	case a.Remote:
		return postgres.Empty(address)
	case a.Dir == "":
		return nil
	}
	return badger.Empty(a.Dir)
}

// Drop deletes the store of a server and all its content. No host may have it open.
func Drop(address string) error { return postgres.Drop(address) }

func openPostgres(address string, o Options) (store.Store, error) {
	s, err := postgres.OpenURL(address, postgres.Options{Logger: o.Logger, Self: o.Self})
	if err != nil {
		return nil, err // avoid a typed nil in the interface
	}
	return s, nil
}
