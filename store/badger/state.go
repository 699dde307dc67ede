package badger

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// States implements store.Store: by stream.
func (s *Store) States(ctx context.Context, connection store.ConnectionID, grant store.GrantID) ([]store.State, error) {
	return listJSON[store.State](ctx, s, stateKey(connection, grant, ""), eraseNote(erasedConnection, string(connection)))
}

// Staged implements store.Store: by stream.
func (s *Store) Staged(ctx context.Context, id store.RunID) ([]store.State, error) {
	return listJSON[store.State](ctx, s, key(kindStaged, string(id), ""))
}

// ResetState implements store.Store.
func (s *Store) ResetState(ctx context.Context, connection store.ConnectionID, grant store.GrantID, stream store.Stream) error {
	return s.queue.do(ctx, true, func(g *group) error {
		if err := idle(g, connection); err != nil {
			return err
		}
		if stream != "" {
			return g.remove(stateKey(connection, grant, stream))
		}
		for _, k := range slices.Collect(g.c.base.keys(stateKey(connection, grant, ""), nil, false)) {
			if err := g.remove(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// A keptGap is a DetailGap with its identity, which its JSON form leaves out.
type keptGap struct {
	store.DetailGap
	Ref string `json:"ref"`
}

// gapKey names a gap by its stream, its parent and its Ref, hashed: Ref may be a record key of
// any length.
func gapKey(c store.ConnectionID, g store.GrantID, gap store.DetailGap) []byte {
	id := sha256.Sum256(key(kindGap, string(gap.Stream), string(gap.ParentStream), gap.Ref))
	return key(kindGap, string(c), string(g), string(id[:]))
}

// Gaps implements store.Store: oldest first.
func (s *Store) Gaps(ctx context.Context, connection store.ConnectionID, grant store.GrantID, status string) ([]store.DetailGap, error) {
	kept, err := listJSON[keptGap](ctx, s, key(kindGap, string(connection), string(grant), ""), eraseNote(erasedConnection, string(connection)))
	if err != nil {
		return nil, err
	}
	var gaps []store.DetailGap
	for _, k := range kept {
		if status == "" || k.Status == status {
			k.DetailGap.Ref = k.Ref
			gaps = append(gaps, k.DetailGap)
		}
	}
	slices.SortFunc(gaps, func(a, b store.DetailGap) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return gaps, nil
}

// A pending is how an open question is stored: what it says is sealed.
// The key is in this process's memory alone, because the run that asks ends with
// it: a stolen disk has no questions that can be read.
type pending struct {
	store.Interaction
	Sealed []byte `json:"sealed,omitempty"`
}

// words are the members of an interaction that are sealed.
type words struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"`
}

// A questionKey seals the words of open questions.
type questionKey struct{ cipher.AEAD }

func newQuestionKey() questionKey {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is right
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the cipher's is the block size of AES
	}
	return questionKey{aead}
}

// place binds what is sealed to one question.
func (p *pending) place() []byte { return key(kindPending, string(p.RunID), p.ID) }

func (k questionKey) seal(q store.Interaction) (*pending, error) {
	plain, err := json.Marshal(words{q.Message, q.Schema})
	if err != nil {
		return nil, err
	}
	p := &pending{Interaction: q}
	p.Message, p.Schema = "", nil
	p.Sealed = k.Seal(nil, nil, plain, p.place()) // #nosec G407 -- it makes the nonce itself
	return p, nil
}

// unseal leaves a question without words that another process sealed.
func (k questionKey) unseal(p *pending) (store.Interaction, error) {
	if len(p.Sealed) == 0 {
		return p.Interaction, nil
	}
	plain, err := k.Open(nil, nil, p.Sealed, p.place())
	if err != nil {
		return p.Interaction, nil
	}
	var w words
	if err := json.Unmarshal(plain, &w); err != nil {
		return p.Interaction, store.Corrupt("question %s of run %s: %v", p.ID, p.RunID, err)
	}
	p.Message, p.Schema = w.Message, w.Schema
	return p.Interaction, nil
}

// Pending implements store.Store.
func (s *Store) Pending(ctx context.Context, id store.RunID) ([]store.Interaction, error) {
	prefix := []byte{kindPending}
	if id != "" {
		prefix = key(kindPending, string(id), "")
	}
	all, err := listJSON[pending](ctx, s, prefix)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	out := make([]store.Interaction, len(all))
	for i := range all {
		if out[i], err = s.questions.unseal(&all[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
