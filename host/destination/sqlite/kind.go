package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// Kind is the kind of destinations at sqlite:FILE.
type Kind struct{}

// Scheme implements destination.Kind.
func (Kind) Scheme() string { return "sqlite:" }

// Check implements destination.Kind.
func (Kind) Check(url, dataDir string) (string, error) {
	return abi.Clean(url), destination.CheckPath(strings.TrimPrefix(url, "sqlite:"), dataDir)
}

// Open implements destination.Kind.
func (Kind) Open(ctx context.Context, url string, o destination.Owner) (destination.Sink, error) {
	s, err := Open(ctx, strings.TrimPrefix(url, "sqlite:"), o, Options{})
	if err != nil {
		return nil, err
	}
	return s, nil
}

var _ destination.Local = Kind{}

// Here implements destination.Local.
func (Kind) Here(ctx context.Context, url string, o destination.Owner) (here bool, err error) {
	path := strings.TrimPrefix(url, "sqlite:")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	r, err := Read(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	defer r.s.interrupted(ctx)()
	if kind, err := r.s.tableKind(destination.MetaTable); err != nil || kind == "" {
		return false, told(err)
	}
	var c claim
	_, err = r.s.meta("owner", &c)
	return c.Host == o.Host && c.Destination == o.Destination, told(err)
}
