package chromium

import "errors"

// The errors of finding and starting a browser. Callers branch on them with
// errors.Is; the message beside them is for the owner and holds no secret, but may
// hold paths of this host, which a guest does not get to see (B3).
var (
	// ErrMissing: there is no browser to start (B173).
	ErrMissing = errors.New("browser_missing")
	// ErrUnsafe: there is one, and it must not be used as things are (B174, B176).
	ErrUnsafe = errors.New("browser_unsafe")
	// ErrStart: it did not come up (B168). Trying again may help.
	ErrStart = errors.New("surface_start_failed")
	// ErrSlow: there is one, and it did not answer in time, or the machine had nothing
	// left to run it with. Trying again helps once the machine is less busy.
	ErrSlow = errors.New("the browser is slow")
)
