package store

import (
	"context"
	"io"
)

// An Imager is a Store that can be copied whole, for backups.
type Imager interface {
	// Image opens a view of everything as of the newest commit. Commits go on
	// meanwhile; what the view needs is kept until it is closed.
	Image(ctx context.Context) (Image, error)
	// Load fills a store that nothing was ever written to from what an Image
	// wrote; ErrNotEmpty. What it reads is not trusted: what is no image of this
	// driver is a *DamageError. After an error the store is of no use. After
	// success it holds the same and has a chain and a witness of its own.
	Load(ctx context.Context, r io.Reader) error
}

// An Image is a Store as of one commit. It is not safe for concurrent use.
type Image interface {
	// Counters lists what every stream must add up to, by connection and stream.
	Counters(ctx context.Context) ([]Counters, error)
	// Copy writes everything in the driver's own form after checking it. The same
	// content gives the same bytes, in this store and in one that was loaded from
	// them.
	Copy(ctx context.Context, w io.Writer) error
	Close()
}

// Counters are what a stream's content must add up to.
type Counters struct {
	Connection  ConnectionID `json:"connection_id"`
	Stream      Stream       `json:"stream"`
	Live        uint64       `json:"records"`
	Tombstones  uint64       `json:"deleted"`
	LastVersion uint64       `json:"last_version"`
	Sum         string       `json:"sum"` // of the current records and tombstones, in hex
}
