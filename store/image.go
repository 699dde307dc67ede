package store

import (
	"context"
	"io"
)

// An Imager is a Store that can be copied whole, for backups and to another one.
type Imager interface {
	// Image opens a view of everything as of the newest commit. Commits go on
	// meanwhile; what the view needs is kept until it is closed.
	Image(ctx context.Context) (Image, error)
	// Fill begins to fill a store that nothing was ever written to with the items of
	// another, which source names as it is now, or goes on with it: at is the place of
	// the newest item that is durable. ErrNotEmpty; *OtherCopyError where the store is in
	// the middle of another copy. One goroutine fills a store, and nobody else uses it.
	Fill(ctx context.Context, source string) (f Filler, at Place, err error)
}

// An Image is a Store as of one commit. It is not safe for concurrent use. One whose
// driver has a form of its own for backups is a Copier as well.
type Image interface {
	// Counters lists what every stream must add up to, by connection and stream.
	Counters(ctx context.Context) ([]Counters, error)
	// Items calls fn for the items of a kind behind a key, in order, and ends with its
	// error. fn keeps nothing of an item.
	Items(ctx context.Context, kind ItemKind, after []byte, fn func(Item) error) error
	Close()
}

// A Copier writes everything in the driver's own form after checking it. The same
// content gives the same bytes, in this store and in one that was loaded from them.
type Copier interface {
	Copy(ctx context.Context, w io.Writer) error
}

// A Loader is a Store with a form of its own for backups.
type Loader interface {
	// Load fills a store that nothing was ever written to from what a Copier
	// wrote; ErrNotEmpty. What it reads is not trusted: what is no image of this
	// driver is a *DamageError. After an error the store is of no use. After
	// success it holds the same and has a chain and a witness of its own.
	Load(ctx context.Context, r io.Reader) error
}

// A Filler fills a store.
type Filler interface {
	// Put takes the next item, in the order of items, and may keep it. What it holds is not trusted:
	// *DamageError. An item is durable some time later, and all before it are then.
	Put(ctx context.Context, i Item) error
	// Flush waits until everything is durable.
	Flush(ctx context.Context) error
	// Finish flushes and makes the store one like any other.
	Finish(ctx context.Context) error
	// Close gives up what is not durable. The store is then to be closed.
	Close()
}

// A Place is a place among items: behind one of a kind with a key.
type Place struct {
	Kind ItemKind `json:"kind,omitempty"`
	Key  []byte   `json:"key,omitempty"`
}

// Copying is the kind of the one document, named CopyNote, of a store that is being filled. It
// is no item.
const (
	Copying  Kind   = "copy"
	CopyNote string = "note"
)

// A Copied is the document of a store that is being filled.
type Copied struct {
	Source string `json:"source"`
	Place
}

// An OtherCopyError says that a store is in the middle of a copy of another source, or of
// this one as it was before.
type OtherCopyError struct{}

func (*OtherCopyError) Error() string {
	return "it holds an unfinished copy of another store, or of this one as it was before it changed; empty it first"
}

// Counters are what a stream's content must add up to.
type Counters struct {
	Connection  ConnectionID `json:"connection_id"`
	Stream      Stream       `json:"stream"`
	Live        uint64       `json:"records"`
	Tombstones  uint64       `json:"deleted"`
	LastVersion uint64       `json:"last_version"`
	Sum         string       `json:"sum"` // of the current records and tombstones, in hex; "" where the driver has another
}
