package page

import "errors"

// The errors of tabs and browsers. Drivers wrap them with their cause; the cause
// is for the host's log only.
var (
	// ErrGone: the node, its document or its frame is not there any more.
	ErrGone = errors.New("the element is gone")
	// ErrHung: the page did not answer in time.
	ErrHung = errors.New("the page does not answer")
	// ErrLost: the browser, or the page's process, is gone. Nothing will answer.
	ErrLost = errors.New("the browser is lost")
	// ErrDialog: a dialog is open and nothing else can be done before it is answered.
	ErrDialog   = errors.New("a dialog is open")
	ErrNoDialog = errors.New("no dialog is open")
	// ErrScheme and ErrHost: an address that may not be loaded.
	ErrScheme = errors.New("addresses of this kind are not loaded")
	ErrHost   = errors.New("the host is not in the connection's network policy")
	// ErrCertificate: the server's certificate is not accepted.
	ErrCertificate = errors.New("the certificate is not accepted")
	// ErrNavigation: the page could not be loaded for another reason.
	ErrNavigation = errors.New("the page could not be loaded")
	ErrKey        = errors.New("unknown or refused key")
	ErrSelector   = errors.New("not a CSS selector")
	ErrTooLarge   = errors.New("too large")
	// ErrKind: the element is not of the kind that the step wants.
	ErrKind = errors.New("the element does not work this way")
)
