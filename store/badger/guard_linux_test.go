package badger_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/store/badger"
)

// Locks and mapped writes are not dependable there.
func TestNetworkFS(t *testing.T) {
	if err := badger.RefuseFS("/d", 0x6969); err == nil || !strings.Contains(err.Error(), "nfs") {
		t.Errorf("nfs: %v", err)
	}
	if err := badger.RefuseFS("/d", 0xEF53); err != nil {
		t.Errorf("ext4: %v", err)
	}
}
