package web_test

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// TestStoreProblems: a client learns what keeps the store from answering, and that asking again later makes sense.
func TestStoreProblems(t *testing.T) {
	for err, code := range map[error]string{
		store.ErrNoSpace:     "store_no_space",
		store.ErrUnavailable: "store_unavailable",
		store.ErrReadOnly:    "store_corrupt",
		store.ErrStopped:     "store_stopped",
	} {
		p, known := web.ProblemOf(fmt.Errorf("list runs: %w", err))
		if !known || p.Status != 503 || p.Code != "unavailable" || p.Details["code"] != code {
			t.Errorf("%v is answered with %+v", err, p)
		}
	}
}
