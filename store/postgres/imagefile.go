package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

func (l *lister) files() error { return nil }

func (f *filler) queueFile(ctx context.Context, t *tx, b *pgx.Batch, i store.Item) error {
	return store.ErrNoFiles
}
