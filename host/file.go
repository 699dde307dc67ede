package host

import (
	"context"
	"net/url"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// Files are what records hold beside their data.
type Files interface {
	// Files lists the files of current records; store.ErrNotFound for no such connection,
	// store.ErrCursorExpired.
	Files(ctx context.Context, q store.FileQuery) (store.FilePage, error)
	// OpenFile opens a content that a record of a connection holds, and says how the record
	// called it: store.ErrNotFound when none does. The caller closes it. What is read was
	// checked.
	OpenFile(ctx context.Context, connection store.ConnectionID, d store.Digest) (store.FileContent, store.File, error)
}

// A File is a file of a record, as it is listed.
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

// FileOf is a file of a connection as it is listed.
func FileOf(id store.ConnectionID, f store.HeldFile) File {
	return File{
		Stream: string(f.Stream), Key: f.Key, Field: f.Field, Digest: string(f.Digest), Size: f.Size, MediaType: f.MediaType, Name: f.Name,
		ContentURL: "/v1/connections/" + url.PathEscape(string(id)) + "/files/" + strings.TrimPrefix(string(f.Digest), "sha256:"),
	}
}
