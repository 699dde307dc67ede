// Package drivers is the one place that names the drivers of store.Store. The
// application and whoever tests against a real store open one by its address.
package drivers

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A driver opens the addresses of one scheme.
type driver struct {
	scheme string
	local  bool // the address names a directory
	open   func(address string, o Options) (store.Store, error)
}

var all = []driver{
	{scheme: "badger", local: true, open: openBadger},
	{scheme: "memory", open: openBadger},
}

// ErrAddress says which addresses there are.
var ErrAddress = errors.New("want memory: or badger:DIR")

// Options are what a driver is told beside the address. The zero value will do.
type Options struct {
	// Logger gets the driver's messages; nil discards them.
	Logger *slog.Logger
	// AllowNetworkFS permits a data directory on a network file system.
	AllowNetworkFS bool
	// AcceptLoss opens a store for writing that proved to have lost commits.
	AcceptLoss bool
	// Ballast is how many bytes are reserved on the disk, and given back when it is
	// full, so that the store can be closed in order.
	Ballast int64
	// Now replaces the clock.
	Now func() time.Time
}

// Open opens the store with an address, and makes it when there is none.
func Open(address string, o Options) (store.Store, error) {
	_, d, err := parse(address)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", address, err)
	}
	return d.open(address, o)
}

// An Address is the name of a store, taken apart: SCHEME:DIR?QUERY.
type Address struct {
	Scheme string
	Dir    string // "" where no directory is named
	Query  string
}

// Parse takes an address apart; ErrAddress when no driver has it.
func Parse(address string) (Address, error) {
	a, _, err := parse(address)
	return a, err
}

func parse(address string) (Address, driver, error) {
	var a Address
	scheme, rest, ok := strings.Cut(address, ":")
	a.Scheme = scheme
	a.Dir, a.Query, _ = strings.Cut(rest, "?")
	for _, d := range all {
		if ok && d.scheme == a.Scheme && d.local == (a.Dir != "") {
			return a, d, nil
		}
	}
	return Address{}, driver{}, ErrAddress
}

func (a Address) String() string {
	address := a.Scheme + ":" + a.Dir
	if a.Query != "" {
		address += "?" + a.Query
	}
	return address
}

func openBadger(address string, o Options) (store.Store, error) {
	s, err := badger.OpenURL(address, badger.Options{
		Logger: o.Logger, AllowNetworkFS: o.AllowNetworkFS, AcceptLoss: o.AcceptLoss, Ballast: o.Ballast, Now: o.Now,
	})
	if err != nil {
		return nil, err // and no *badger.Store in an interface
	}
	return s, nil
}
