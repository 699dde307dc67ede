package host

import (
	"context"

	"github.com/sluicehost/sluice/store"
)

// Files are what records hold beside their data.
type Files interface {
	// Files lists the files of current records; store.ErrCursorExpired.
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
