package drivers_test

import (
	"errors"
	"testing"

	"github.com/sluicehost/sluice/store/drivers"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"memory:", "memory:?memory=small", "badger:" + dir, "badger:" + dir + "?memory=small"} {
		a, err := drivers.Parse(address)
		if err != nil || a.String() != address {
			t.Fatalf("%s: %v %v", address, a, err)
		}
		s, err := drivers.Open(address, drivers.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range []string{"", "memory", "memory:x", "badger:", "badger", "mysql:x", dir} {
		if s, err := drivers.Open(address, drivers.Options{}); s != nil || !errors.Is(err, drivers.ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if s, err := drivers.Open("memory:?x=1", drivers.Options{}); s != nil || err == nil {
		t.Errorf("an unknown parameter: %v", err)
	}
}
