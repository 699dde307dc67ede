package vault

import (
	"context"

	"github.com/sluicehost/sluice/store"
)

// OnStep has f told of every durable step.
func (v *Vault) OnStep(f func(string)) { v.step = f }

// AdmitKey is what somebody does who has a vault and writes the database.
func (s *Shared) AdmitKey(ctx context.Context, host, key, code string) error {
	return s.change(ctx, func(r *reading) ([]store.Write, error) {
		return nil, r.put(admitted{Host: host, Key: key}, box{code, r.keys})
	})
}
