// Package files keeps a directory up to date: it has a folder for each stream's table, with part files named after the
// versions of their rows, and one manifest.
//
//	DIR/_sluice_manifest.json       owner, epoch, and of each table its mark, shape and parts
//	DIR/_sluice_lock                locked during each step
//	DIR/_sluice_streams/part-….csv  the table of streams
//	DIR/mail_items/part-000000000001-000000020000-000007.csv
//
// A step writes new part files under hidden names and then commits by replacing the manifest with a single rename. Only
// then are the new files renamed and the superseded ones removed. A program that reads all files of a folder finds each
// key once, except for the moments in which a commit renames and removes files; the next step completes what a crash
// interrupted.
//
// When a key changes, its part is rewritten without it. So parts are small enough that a few changes in a large table
// take little time, and few enough to be read together.
package files

import (
	"context"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// Kind is a kind of destination whose files are all of one format, such as csv:DIR.
type Kind struct{ Format Format }

// The kinds that need no library.
var (
	JSONL = Kind{jsonl{}}
	CSV   = Kind{csvFormat{}}
)

// Scheme implements destination.Kind.
func (k Kind) Scheme() string { return k.Format.Name() + ":" }

// Check implements destination.Kind.
func (k Kind) Check(url, dataDir string) (string, error) {
	return abi.Clean(url), destination.CheckPath(k.path(url), dataDir)
}

// Open implements destination.Kind.
func (k Kind) Open(ctx context.Context, url string, o destination.Owner) (destination.Sink, error) {
	return open(ctx, k.path(url), o, k.Format)
}

var _ destination.Local = Kind{}

// Here implements destination.Local.
func (k Kind) Here(_ context.Context, url string, o destination.Owner) (bool, error) {
	return claimed(k.path(url), o, k.Format)
}

func (k Kind) path(url string) string { return strings.TrimPrefix(url, k.Scheme()) }
