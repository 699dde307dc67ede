package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DigestOf is the digest of a content whose SHA-256 is sum.
func DigestOf(sum []byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum)) }

const digestPrefix = "sha256:"

// ParseDigest reads what DigestOf makes, and nothing else.
func ParseDigest(text string) (Digest, error) {
	digits, ok := strings.CutPrefix(text, digestPrefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size || string(DigestOf(sum)) != text {
		return "", fmt.Errorf("digest %.80q: want sha256: and 64 hexadecimal digits in lower case", text)
	}
	return Digest(text), nil
}

// A File is how a record holds a file.
type File struct {
	Digest    Digest `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Name      string `json:"name,omitempty"` // for who looks at it; never a path
}

// A HeldFile is a file and the record that holds it.
type HeldFile struct {
	Stream Stream `json:"stream"`
	Key    string `json:"key"` // canonical
	Field  string `json:"field"`
	File
}

// A FileQuery selects what records of a connection hold, in the order of stream and key.
type FileQuery struct {
	Connection ConnectionID
	Stream     Stream // "" is all
	Key        string // of one record of Stream; "" is all
	After      string // FilePage.After of the page before
	Limit      int    // records, 1..1000; 0 means 100
}

// A FilePage is the files of some records. More says that another page follows.
type FilePage struct {
	Files []HeldFile
	After string
	More  bool
}

// A FileUsage is what the files of a connection take, each content once.
type FileUsage struct {
	Files uint64 `json:"files"`
	Bytes uint64 `json:"bytes"`
}

// Files are what records hold beside their data: contents by digest, each kept once a
// connection, for as long as a current record of it holds them, and after the last one until
// its run ends: a later record of the run may name them again (up to 1,000 of them). A record
// and what it holds
// are one commit (Batch.Hold, Commit.Files). A driver may be without them: FilesOf.
type Files interface {
	// StageFile begins a content for a record of a connection; ctx is that of all its writes.
	// ErrNoSpace.
	StageFile(ctx context.Context, connection ConnectionID) (StagedFile, error)
	// OpenFile opens a content; ErrNotFound. What is read is checked before it is handed
	// out: *DamageError. The caller closes it; one that is erased meanwhile may be read to
	// its end.
	OpenFile(ctx context.Context, connection ConnectionID, d Digest) (FileContent, error)
	// HasFile is what is known of a content: as the record called it that held it first.
	// ErrNotFound.
	HasFile(ctx context.Context, connection ConnectionID, d Digest) (File, error)
	// HeldFiles lists what current records hold; ErrCursorExpired.
	HeldFiles(ctx context.Context, q FileQuery) (FilePage, error)
	// FileUsage counts what is kept of a connection.
	FileUsage(ctx context.Context, connection ConnectionID) (FileUsage, error)
}

// A StagedFile is a content that no record holds yet. It is for one goroutine.
type StagedFile interface {
	io.Writer
	// Finish makes what was written durable, or leaves it to the commit that takes it.
	Finish() (d Digest, size int64, err error)
	// Memory is how many bytes it holds in memory until a commit takes it.
	Memory() int
	// Discard drops a content that was given to no Submit.
	Discard()
}

// A FileContent is a content that is read.
type FileContent interface {
	io.ReadSeekCloser
	Size() int64
}

// ErrNoFiles is the error of a store whose driver keeps no files.
var ErrNoFiles = errors.New("this store keeps no files")

// FilesOf returns what s keeps beside records; ErrNoFiles where its driver keeps none.
func FilesOf(s any) (Files, error) {
	switch s := s.(type) {
	case Files:
		return s, nil
	case interface{ FilesBeneath() (Files, error) }: // around another
		return s.FilesBeneath()
	}
	return nil, ErrNoFiles
}

// A Held is a file that a change of a Batch holds.
type Held struct {
	Field string
	File
}

// Hold says which files the change that was appended last holds. A batch of a stream that
// may hold files says so of every change, also of one that holds none.
func (b *Batch) Hold(files []Held) {
	if b.held == nil {
		b.held = map[int][]Held{}
	}
	if len(files) > 0 {
		b.held[b.count-1] = files
		b.holds += len(files)
	}
}

// Held is what the nth change holds.
func (b *Batch) Held(n int) []Held { return b.held[n] }

// Holds counts the files of all changes; ok says that Hold was called.
func (b *Batch) Holds() (files int, ok bool) { return b.holds, b.held != nil }
