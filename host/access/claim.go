package access

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Hosts that share a store claim an idempotent request in it before they carry it out. So of equal requests at several
// hosts at the same moment one is carried out, and the others wait for its answer, as they do at one host. A claim goes
// in the commit of the answer.

const (
	// claimLife is how long a claim holds at most: longer than any request takes on a slow machine, since another host
	// carries it out again after that. It ends earlier with the host that made it.
	claimLife = time.Hour
	// claimLook is how often another host looks whether a claim is over.
	claimLook = 100 * time.Millisecond
	// unclaimTime bounds the wait for the store when a claim is taken back.
	unclaimTime = 5 * time.Second
)

// errClaimed reports that another host carries the request out.
var errClaimed = errors.New("claimed by another host")

// A claim is the document that says which host carries out a request.
type claim struct {
	Print []byte `json:"print"`
	Epoch string `json:"epoch"` // start of the host
}

func claimID(id string) string { return "claim/" + id }

// claim makes this host the one that carries out a request, in place of one that is gone. It returns errClaimed if
// another host does, and ErrMismatch if that one has another request.
func (r *Replies) claim(ctx context.Context, id string, f *flight) error {
	own, revision := r.members.Self().Epoch, uint64(0)
	d, err := r.store.Document(ctx, store.Replies, claimID(id))
	switch {
	case err == nil:
		var c claim
		if err := json.Unmarshal(d.Data, &c); err != nil {
			return fmt.Errorf("read claim of a request: %w", err)
		}
		if c.Epoch != own { // one of this host, without a flight, is left over
			if !hmac.Equal(c.Print, f.print) {
				return ErrMismatch
			}
			all, err := r.members.Members(ctx)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(all, func(m store.Member) bool { return m.Epoch == c.Epoch }) {
				return errClaimed
			}
		}
		revision = d.Revision
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	data, err := json.Marshal(claim{f.print, own})
	if err != nil {
		return err
	}
	err = r.store.Write(ctx, store.Write{Kind: store.Replies, ID: claimID(id), Data: data, If: &revision,
		ExpiresAt: r.now().Add(claimLife)})
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return errClaimed
	}
	return err
}

// settling returns the writes that store an answer and end the claim.
func (r *Replies) settling(id string, answer store.Write) []store.Write {
	if r.members == nil {
		return []store.Write{answer}
	}
	return []store.Write{answer, {Kind: store.Replies, ID: claimID(id)}}
}

// unclaim takes a claim back, so that the next equal request is carried out. If the store is away, the claim ends by
// itself.
func (r *Replies) unclaim(id string) {
	if r.members == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unclaimTime)
	defer cancel()
	_ = r.store.Write(ctx, store.Write{Kind: store.Replies, ID: claimID(id)})
}
