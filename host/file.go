package host

import (
	"context"
	"net/url"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// Files gives access to the files that records hold.
type Files interface {
	// Files lists the files of current records. It returns store.ErrNotFound for an unknown
	// connection and store.ErrCursorExpired for an old cursor.
	Files(ctx context.Context, q store.FileQuery) (store.FilePage, error)
	// OpenFile opens a content that a record of the connection holds and returns that
	// record's description of it, or store.ErrNotFound. Reads are verified against the
	// digest. The caller closes the content.
	OpenFile(ctx context.Context, connection store.ConnectionID, d store.Digest) (store.FileContent, store.File, error)
}

// A File is a record's file as listings show it.
type File struct {
	Stream     string `json:"stream"`
	Key        string `json:"key"`
	Field      string `json:"field"`
	Digest     string `json:"digest"`
	Size       int64  `json:"size"`
	MediaType  string `json:"mediaType"`
	Name       string `json:"name,omitempty"`
	ContentURL string `json:"contentUrl"`
}

// FileOf converts a held file of connection id.
func FileOf(id store.ConnectionID, f store.HeldFile) File {
	return File{
		Stream: string(f.Stream), Key: f.Key, Field: f.Field, Digest: string(f.Digest), Size: f.Size,
		MediaType: f.MediaType, Name: f.Name, ContentURL: "/v1/connections/" + url.PathEscape(string(id)) + "/files/" +
			strings.TrimPrefix(string(f.Digest), "sha256:"),
	}
}
