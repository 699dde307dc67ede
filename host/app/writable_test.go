package app

import (
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

type stalledStore struct{ store.Store }

func (stalledStore) Stalled() error { return store.ErrNoSpace }

// A host whose store takes no records is not ready, although the store is read.
func TestStalledIsNotWritable(t *testing.T) {
	st, err := badger.OpenURL("memory:?memory=small", badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for want, s := range map[bool]store.Store{true: st, false: stalledStore{st}} {
		if got := (&directory{Store: s}).writable(t.Context()); got != want {
			t.Errorf("%T: writable is %v", s, got)
		}
	}
}
