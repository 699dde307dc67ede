package store

import (
	"context"
	"io"
)

// An Imager is a Store that can be copied as a whole, for backups and to another store.
type Imager interface {
	// Image opens a view of everything as of the newest commit. Commits continue meanwhile;
	// the view's data is kept until it is closed.
	Image(ctx context.Context) (Image, error)
	// Fill begins to fill an empty store with the items of another, whose current content
	// source identifies, or resumes that: at is the newest durable item. It returns
	// ErrNotEmpty, or *OtherCopyError if the store is being filled from another source.
	// Only one goroutine uses a store while it is filled.
	Fill(ctx context.Context, source string) (f Filler, at Place, err error)
}

// An Image is a Store as of one commit. It is not safe for concurrent use. If the driver
// has its own backup format, it is also a Copier.
type Image interface {
	// Counters lists the counters of every stream, by connection and stream.
	Counters(ctx context.Context) ([]Counters, error)
	// Items calls fn for the items of a kind after a key, in order, and stops at an error
	// of fn. fn must not keep an item.
	Items(ctx context.Context, kind ItemKind, after []byte, fn func(Item) error) error
	Close()
}

// A Copier writes everything in the driver's own format, after checking it. Equal content
// gives equal bytes, also in a store that was loaded from them.
type Copier interface {
	Copy(ctx context.Context, w io.Writer) error
}

// A Loader is a Store with its own backup format.
type Loader interface {
	// Load fills an empty store from the output of a Copier, or returns ErrNotEmpty. It
	// does not trust its input: *DamageError. After an error the store is unusable. A
	// loaded store has the same content, with a new chain and witness.
	Load(ctx context.Context, r io.Reader) error
}

// A Filler fills a store.
type Filler interface {
	// Put adds the next item, in order, and may keep it. It does not trust the item:
	// *DamageError. Items become durable later, in order.
	Put(ctx context.Context, i Item) error
	// Flush waits until all items are durable.
	Flush(ctx context.Context) error
	// Finish flushes and turns the store into a normal one.
	Finish(ctx context.Context) error
	// Close drops what is not durable. The store must then be closed.
	Close()
}

// A Place is a position among items: after the item of a kind with a key.
type Place struct {
	Kind ItemKind `json:"kind,omitempty"`
	Key  []byte   `json:"key,omitempty"`
}

// Copying is the kind, and CopyNote the id, of the only document of a store that is being
// filled. It is not an item.
const (
	Copying  Kind   = "copy"
	CopyNote string = "note"
)

// A Copied is the content of that document.
type Copied struct {
	Source string `json:"source"`
	Place
}

// An OtherCopyError says that a store holds an unfinished copy of another source, or of an
// earlier state of this one.
type OtherCopyError struct{}

func (*OtherCopyError) Error() string {
	return "it holds an unfinished copy of another store, or of this one as it was before it changed; empty it first"
}

// Counters are the totals of a stream's content.
type Counters struct {
	Connection  ConnectionID `json:"connection_id"`
	Stream      Stream       `json:"stream"`
	Live        uint64       `json:"records"`
	Tombstones  uint64       `json:"deleted"`
	LastVersion uint64       `json:"last_version"`
	Sum         string       `json:"sum"` // of the current records and tombstones, in hex; "" if the driver has another
}
