package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// secretBytes is the size of a secret of the installation.
const secretBytes = 32

// setting reads a document of the installation, creating it if necessary. If several create it at
// the same time, one wins and all read that one.
func setting[T any](ctx context.Context, st store.Documents, name string, fresh func() T) (T, error) {
	for {
		var v T
		d, err := st.Document(ctx, store.Installation, name)
		if err == nil {
			if err := json.Unmarshal(d.Data, &v); err != nil {
				return v, fmt.Errorf("read setting %s: %w", name, err)
			}
			return v, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return v, fmt.Errorf("read setting %s: %w", name, err)
		}
		v = fresh()
		data, err := json.Marshal(v)
		if err != nil {
			return v, err
		}
		err = st.Write(ctx, store.Write{Kind: store.Installation, ID: name, Data: data, If: store.Absent()})
		var conflict *store.ConflictError
		if err == nil || !errors.As(err, &conflict) {
			return v, err
		}
	}
}

// PrivateHost returns this installation's own host name, sluice-<8 random characters>.localhost.
// Browsers resolve it to loopback, and no other server on the same machine gets its cookie.
func PrivateHost(ctx context.Context, st store.Documents) (string, error) {
	return setting(ctx, st, "private-host", func() string {
		const letters = "abcdefghijklmnopqrstuvwxyz234567"
		name := random(8)
		for i, b := range name {
			name[i] = letters[b%32]
		}
		return "sluice-" + string(name) + ".localhost"
	})
}
