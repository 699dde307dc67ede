package abi_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// FuzzManifest: what is read keeps its bytes and is read the same again; what is
// refused says by which rule.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, src []byte) {
		given := string(src)
		m, err := abi.ReadManifest(src)
		if string(src) != given {
			t.Fatal("reading changed the bytes")
		}
		if err != nil {
			var bad *abi.ManifestError
			if !errors.As(err, &bad) || bad.Rule == "" || bad.Want == "" || m != nil {
				t.Fatalf("%v, %v", m, err)
			}
			return
		}
		if string(m.Raw) != given {
			t.Fatal("the raw manifest was changed")
		}
		again, err := abi.ReadManifest(m.Raw)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("read again: %+v, %v", again, err)
		}
		if !abi.IsSlug(m.Name()) || len(m.Streams) == 0 {
			t.Fatalf("name %q, %d streams", m.Name(), len(m.Streams))
		}
		for _, s := range m.Streams {
			if m.Stream(s.Name).Name != s.Name {
				t.Fatalf("stream %q is not found", s.Name)
			}
		}
	})
}
