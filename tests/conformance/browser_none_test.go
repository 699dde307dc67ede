package conformance

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

// noBrowsers offers no browser, whatever this machine has, so that a transcript is the
// same everywhere.
type noBrowsers struct{}

var _ app.Browsers = noBrowsers{}

func (noBrowsers) Facts(context.Context) browser.Facts {
	return browser.Facts{Problem: "the stage has no browser"}
}

func (noBrowsers) NewSession(browser.SessionOptions) (app.Browser, error) {
	return nil, errors.New("the stage has no browser")
}

func (noBrowsers) Forget(context.Context, store.ConnectionID) error { return nil }
func (noBrowsers) Close(context.Context) error                      { return nil }
