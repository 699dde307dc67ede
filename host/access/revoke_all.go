package access

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicehost/sluice/store"
)

// RevokeAll revokes every key of a restored store, ends every session and login, and returns how
// many keys were not revoked before. Otherwise credentials revoked since the backup would be valid
// again.
func RevokeAll(ctx context.Context, s store.Documents, now time.Time) (revoked int, err error) {
	now = now.UTC().Truncate(time.Millisecond)
	err = rewrite(ctx, s, store.Keys, func(d store.Document) (*store.Write, error) {
		var k storedKey
		if err := json.Unmarshal(d.Data, &k); err != nil {
			return &store.Write{Kind: store.Keys, ID: d.ID}, nil // unreadable, so of no use to anybody
		}
		if k.RevokedAt != nil {
			return nil, nil
		}
		revoked++
		k.RevokedAt = &now
		data, err := json.Marshal(k)
		return &store.Write{Kind: store.Keys, ID: d.ID, Data: data}, err
	})
	for _, kind := range []store.Kind{store.Sessions, store.Logins} {
		err = errors.Join(err, rewrite(ctx, s, kind, func(d store.Document) (*store.Write, error) {
			return &store.Write{Kind: kind, ID: d.ID}, nil
		}))
	}
	return revoked, err
}

// rewrite writes what f returns for every document of a kind, page by page.
func rewrite(ctx context.Context, s store.Documents, kind store.Kind,
	f func(store.Document) (*store.Write, error)) error {
	for after := ""; ; {
		docs, err := s.Documents(ctx, store.DocumentQuery{Kind: kind, After: after, Limit: 100})
		if err != nil || len(docs) == 0 {
			return err
		}
		var writes []store.Write
		for _, d := range docs {
			w, err := f(d)
			if err != nil {
				return err
			}
			if w != nil {
				writes = append(writes, *w)
			}
			after = d.ID
		}
		if len(writes) > 0 {
			if err := s.Write(ctx, writes...); err != nil {
				return err
			}
		}
	}
}
