package conformance

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// noBrowsers are those of the stage: none, whatever this machine has, so that a
// transcript reads the same everywhere (R20).
type noBrowsers struct{}

var _ host.Browsers = noBrowsers{}

func (noBrowsers) Facts(context.Context) host.BrowserFacts {
	return host.BrowserFacts{Problem: "the stage has no browser"}
}

func (noBrowsers) Lend(host.Lease) (run.Browser, error) {
	return nil, errors.New("the stage has no browser")
}

func (noBrowsers) Forget(context.Context, store.ConnectionID) error { return nil }
func (noBrowsers) Close(context.Context) error                      { return nil }
