package destinationtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/destination"
)

// FullDisk tests a place whose disk fill fills: what had arrived stays as it was, the error says that the disk is full,
// and once there is space again everything arrives, with the same sink and with another.
func FullDisk(t *testing.T, p Place, fill func() (free func())) {
	src, s := newSource(), open(t, p)
	put := func(round int) {
		for i := range 200 {
			src.put(fmt.Sprintf("k%03d", i), fmt.Sprintf(`{"round":%d,"pad":"%s"}`, round, strings.Repeat("x", 2000)))
		}
	}
	put(0)
	err := src.bring(s, destination.Current)
	if err != nil {
		t.Fatal(err)
	}
	free := fill()
	var want []map[string]string
	for round := 1; err == nil; round++ { // space already allocated takes some rounds
		if round > 2000 {
			t.Fatal("the disk does not get full")
		}
		want = src.want(destination.Current)
		put(round)
		err = src.bring(s, destination.Current)
	}
	if !strings.Contains(err.Error(), "the disk is full") &&
		!strings.Contains(err.Error(), "the disk of the server is full") {
		t.Errorf("a full disk says: %v", err)
	}
	free()
	if diff := cmp.Diff(want, sorted(p.Rows(t, "mail_items"))); diff != "" {
		t.Fatalf("after a batch that found no room (-want +got):\n%s", diff)
	}
	if err := src.bring(s, destination.Current); err != nil {
		t.Fatal(err)
	}
	check(t, p, src, destination.Current)
	put(-1)
	if err := src.bring(open(t, p), destination.Current); err != nil {
		t.Fatal(err)
	}
	check(t, p, src, destination.Current)
}
