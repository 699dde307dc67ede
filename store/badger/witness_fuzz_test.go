package badger_test

import (
	"bytes"
	"testing"

	"github.com/sluicehost/sluice/store/badger"
)

// FuzzWitness: of entries that something was done to, those before it are read or
// the file is called broken; none is read that was never written.
func FuzzWitness(f *testing.F) {
	f.Add(uint16(3), uint16(48), []byte{1})
	f.Add(uint16(1), uint16(0), []byte{})
	f.Add(uint16(9), uint16(400), bytes.Repeat([]byte{0xff}, 48))
	f.Fuzz(func(t *testing.T, n, at uint16, with []byte) {
		whole := badger.MakeWitness(7, 7+uint64(n%100))
		if entries, last, err := badger.ParseWitness(whole); err != nil || entries != len(whole)/48 ||
			last != 7+uint64(n%100) {
			t.Fatalf("%d entries to %d, %v", entries, last, err)
		}
		spoilt := bytes.Clone(whole)
		copied := copy(spoilt[min(int(at), len(spoilt)):], with)
		entries, last, err := badger.ParseWitness(spoilt)
		if bytes.Equal(spoilt, whole) {
			return
		}
		first := 0 // entry that is not as it was
		for spoilt[first] == whole[first] {
			first++
		}
		if first /= 48; entries > first ||
			err == nil && (entries != first || first != len(whole)/48-1 || last != 6+uint64(first)) {
			t.Fatalf("%d bytes at %d: entry %d is changed, %d were read up to %d, %v", copied, at, first, entries, last, err)
		}
		_, _, _ = badger.ParseWitness(with) // what is no witness at all
	})
}
