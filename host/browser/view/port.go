package view

import (
	"context"
	"errors"
	"io"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Conn is one connection of a viewer, which carries whole messages (B258). Read
// is called from one goroutine and Write from another; Close may be called from any
// goroutine and more than once, and ends both.
type Conn interface {
	// Read returns the next message; it belongs to the caller. Whoever makes the Conn
	// bounds a message at MaxMessage.
	Read() (binary bool, message []byte, err error)
	// Write returns within a bound of the Conn's own, and does not keep the message.
	Write(binary bool, message []byte) error
	// Close says why, with one of the codes of close.go.
	Close(code int, reason string)
}

// MaxMessage is how long a message of a viewer may be, in bytes: a piece of a file
// is the longest.
const MaxMessage = 256 << 10

// A Surface is whoever holds the browser for the run, as the view needs it. Its
// methods are called from any goroutine, one of Taken and Released at a time.
type Surface interface {
	// Taken begins the owner's control (B222): when it returns nil no verb of the
	// guest touches the page before Released. It waits for the verb that is running,
	// until ctx ends. An error means that the lease is not given.
	Taken(ctx context.Context) error
	// Released ends it: element ids are stale and the revision rises (B133).
	Released()
	// Sealed are the nodes that hold values which the guest may not see; they are
	// covered for those who only watch (B220).
	Sealed() []page.Ref
	// Upload makes room for a file of the owner's where the browser can read it
	// (B228). ErrUploads when the connector may not upload.
	Upload(ctx context.Context, name string, size int64) (Upload, error)
}

// ErrUploads: the binding has no capability for uploads.
var ErrUploads = errors.New("uploads are not permitted")

// An Upload is a file that is being received. The view erases it when the surface
// ends, or at once when it was not used.
type Upload interface {
	io.Writer
	// Path is where the browser finds it, once Done.
	Path() string
	Done() error
	Erase()
}
