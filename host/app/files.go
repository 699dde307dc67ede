package app

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// recordFiles serves the files that belong to records.
type recordFiles struct{ *directory }

var _ host.Files = (*recordFiles)(nil)

// Files implements host.Files. The page is empty for a store without files.
func (fs *recordFiles) Files(ctx context.Context, q store.FileQuery) (store.FilePage, error) {
	if _, err := fs.Store.Connection(ctx, q.Connection); err != nil {
		return store.FilePage{}, err
	}
	kept, err := store.FilesOf(fs.Store)
	if err != nil {
		return store.FilePage{}, nil
	}
	return kept.HeldFiles(ctx, q)
}

// OpenFile implements host.Files.
func (fs *recordFiles) OpenFile(ctx context.Context, c store.ConnectionID,
	d store.Digest) (store.FileContent, store.File, error) {
	kept, err := store.FilesOf(fs.Store)
	if err != nil {
		return nil, store.File{}, store.ErrNotFound
	}
	info, err := kept.HasFile(ctx, c, d)
	if err != nil {
		return nil, info, err
	}
	content, err := kept.OpenFile(ctx, c, d)
	var damage *store.DamageError
	if errors.As(err, &damage) {
		err = host.Refuse("store_corrupt", "The file is damaged: %s. A backup may have it.", damage.Detail)
	}
	return content, info, err
}
