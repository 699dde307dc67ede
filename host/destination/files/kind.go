// Package files keeps a directory up to date: a folder for each stream's table, in it part
// files named by the versions of their rows, and one manifest.
//
//	DIR/_sluice_manifest.json       owner, epoch, and of each table its mark, shape and parts
//	DIR/_sluice_lock                locked for the time of each step
//	DIR/_sluice_streams/part-….csv  the table of streams
//	DIR/mail_items/part-000000000001-000000020000-000007.csv
//
// A step writes new part files under hidden names, then replaces the manifest, which is the
// commit: the rename of one file. Only then do the new files get their names, and those that
// they supersede go. A program that reads all files of a folder finds each key once,
// whatever became of the host; what a crash left half done is finished by the next step.
//
// A changed key has its part rewritten without it, so parts are kept small enough that a
// few changes in a large table take little time, and few enough to be read together.
package files

import (
	"context"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// Kind is the kind of directories whose files are of one format, such as csv:DIR.
type Kind struct{ Format Format }

// The kinds of files that need no library.
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
