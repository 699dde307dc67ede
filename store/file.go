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

// DigestOf returns the digest of a content with this SHA-256.
func DigestOf(sum []byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum)) }

const digestPrefix = "sha256:"

// ParseDigest accepts exactly the results of DigestOf.
func ParseDigest(text string) (Digest, error) {
	digits, ok := strings.CutPrefix(text, digestPrefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size || string(DigestOf(sum)) != text {
		return "", fmt.Errorf("digest %.80q: want sha256: and 64 hexadecimal digits in lower case", text)
	}
	return Digest(text), nil
}

// A File is a record's description of a file.
type File struct {
	Digest    Digest `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Name      string `json:"name,omitempty"` // shown to people; never a path
}

// A HeldFile is a file and the record that holds it.
type HeldFile struct {
	Stream Stream `json:"stream"`
	Key    string `json:"key"` // canonical
	Field  string `json:"field"`
	File
}

// A FileQuery selects the files of a connection's records, in the order of stream and key.
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

// A FileUsage is the space that the files of a connection take, each content counted once.
type FileUsage struct {
	Files uint64 `json:"files"`
	Bytes uint64 `json:"bytes"`
}

// Files keeps the files of records: contents by digest, each stored once per connection, as
// long as a current record holds it, and after the last one until its run ends, because a
// later record of the run may refer to it (at most 1,000 contents). A record and its files
// are one commit (Batch.Hold, Commit.Files). A driver may lack Files; see FilesOf.
type Files interface {
	// StageFile begins a content for a record of a connection. ctx covers all its writes.
	// It may return ErrNoSpace.
	StageFile(ctx context.Context, connection ConnectionID) (StagedFile, error)
	// OpenFile opens a content, or returns ErrNotFound. Data is verified before it is
	// returned: *DamageError. A content that is erased can still be read to its end. The
	// caller closes it.
	OpenFile(ctx context.Context, connection ConnectionID, d Digest) (FileContent, error)
	// HasFile returns the description by the first record that held a content, or
	// ErrNotFound.
	HasFile(ctx context.Context, connection ConnectionID, d Digest) (File, error)
	// HeldFiles lists the files of current records. It may return ErrCursorExpired.
	HeldFiles(ctx context.Context, q FileQuery) (FilePage, error)
	// FileUsage returns what the files of a connection take.
	FileUsage(ctx context.Context, connection ConnectionID) (FileUsage, error)
}

// A StagedFile is a content that no record holds yet. It is not safe for concurrent use.
type StagedFile interface {
	io.Writer
	// Finish completes the content. It becomes durable now or with the commit that takes
	// it.
	Finish() (d Digest, size int64, err error)
	// Memory returns the bytes that it keeps in memory until then.
	Memory() int
	// Discard drops a content that was not passed to Submit.
	Discard()
}

// A FileContent is an open content.
type FileContent interface {
	io.ReadSeekCloser
	Size() int64
}

// ErrNoFiles is returned for a store whose driver keeps no files.
var ErrNoFiles = errors.New("this store keeps no files")

// FilesOf returns the Files of s, or ErrNoFiles.
func FilesOf(s any) (Files, error) {
	switch s := s.(type) {
	case Files:
		return s, nil
	case interface{ FilesBeneath() (Files, error) }: // around another
		return s.FilesBeneath()
	}
	return nil, ErrNoFiles
}

// A Held is a file of a change of a Batch.
type Held struct {
	Field string
	File
}

// Hold sets the files of the last appended change. In a batch of a stream with files it is
// called for every change, also for one without.
func (b *Batch) Hold(files []Held) {
	if b.held == nil {
		b.held = map[int][]Held{}
	}
	if len(files) > 0 {
		b.held[b.count-1] = files
		b.holds += len(files)
	}
}

// Held returns the files of the n-th change.
func (b *Batch) Held(n int) []Held { return b.held[n] }

// Holds returns the number of files of all changes; ok says that Hold was called.
func (b *Batch) Holds() (files int, ok bool) { return b.holds, b.held != nil }
