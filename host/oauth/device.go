package oauth

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A DeviceCode is the code that the owner enters, and where. Invariant: URL is http or https in
// visible ASCII without a user name, and Code has no control characters.
type DeviceCode struct {
	URL     string
	Host    string // of URL, for the owner to compare
	Code    string
	Expires time.Time
}

// Bounds of a device flow.
const (
	usualInterval = 5 // seconds, RFC 8628 section 3.2
	mostInterval  = 60
	usualDevice   = 15 * time.Minute
	mostDevice    = 30 * time.Minute
)

// Device authorizes by a code that the owner enters elsewhere (RFC 8628). show is called once. It
// waits while the code is valid; ctx ends it. The error is an *Error or ctx's.
func (c *Client) Device(ctx context.Context, show func(DeviceCode)) (Stored, error) {
	through := c.through(ctx)
	da, err := c.config().DeviceAuth(through, c.options()...)
	if err != nil {
		return Stored{}, flowError(ctx, explain(ctx, hostOf(c.Declared.DeviceURL), err))
	}
	now := time.Now()
	if da.Expiry.IsZero() {
		da.Expiry = now.Add(usualDevice)
	}
	if last := now.Add(mostDevice); da.Expiry.After(last) {
		da.Expiry = last
	}
	if da.Interval <= 0 {
		da.Interval = usualInterval
	}
	da.Interval = min(da.Interval, mostInterval)
	code, ok := shownCode(da.VerificationURI, da.UserCode, da.Expiry)
	if !ok || !sendable(da.DeviceCode) {
		return Stored{}, errorf(CodeUnavailable, "%s answered with what is no code to enter", hostOf(c.Declared.DeviceURL))
	}
	show(code)
	t, err := c.config().DeviceAccessToken(through, da)
	if err != nil && ctx.Err() == nil && !time.Now().Before(da.Expiry) {
		return Stored{}, errorf(CodeExpired, "the code of %s expired before it was entered", code.Host)
	}
	if t, err = c.checked(ctx, t, err); err != nil {
		return Stored{}, flowError(ctx, err)
	}
	return c.authorization(t)
}

// flowError returns ctx's error if ctx ended the flow, otherwise err.
func flowError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// shownCode refuses what could not be displayed verbatim.
func shownCode(text, code string, expires time.Time) (DeviceCode, bool) {
	u, err := url.Parse(text)
	visible := len(text) <= 1024 &&
		!strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' })
	if err != nil || !visible || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return DeviceCode{}, false
	}
	if code == "" || len(code) > 64 || abi.Clean(code) != code {
		return DeviceCode{}, false
	}
	return DeviceCode{URL: text, Host: u.Host, Code: code, Expires: expires}, true
}
