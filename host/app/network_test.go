package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sluicehost/sluice/abi"
)

// An owner names the server where the manifest leaves it open, and adds no place that the
// manifest does not have.
func TestOwnerDestinations(t *testing.T) {
	m := asking("open", "bound", "none")
	m.Sluice.Secrets[0].Destinations = []abi.Destination{
		{Origin: "https://api.example", Placements: []string{"body"}},
		{Origin: abi.OwnerOrigin, PathPrefix: "/dav/", Placements: []string{"header:Authorization"}},
	}
	m.Sluice.Secrets[1].Destinations = []abi.Destination{{Origin: "https://api.example", Placements: []string{"body"}}}
	for _, tt := range []struct{ secret, origin, want string }{
		{"open", "https://dav.example", "https://dav.example"},
		{"open", "https://DAV.example:443/", "https://dav.example"},
		{"open", "http://127.0.0.1:5232", "http://127.0.0.1:5232"},
		{"open", "http://[::1]:80", "http://[::1]"},
		{"open", "http://dav.example", ""},
		{"open", "http://192.168.0.2", ""},
		{"open", "https://dav.example/path", ""},
		{"open", "https://me:it@dav.example", ""},
		{"open", "https://*.example", ""},
		{"open", "dav.example", ""},
		{"open", "owner", ""},
		{"open", "", ""},
		{"bound", "https://dav.example", ""},
		{"none", "https://dav.example", ""},
		{"other", "https://dav.example", ""},
	} {
		got, err := OwnerDestinations(m, tt.secret, tt.origin)
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s may go to %s: %v", tt.secret, tt.origin, got)
			}
			continue
		}
		want := []abi.Destination{{Origin: tt.want, PathPrefix: "/dav/", Placements: []string{"header:Authorization"}}}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s to %s: %v\n%s", tt.secret, tt.origin, err, d)
		}
	}
}

// What was named last for a secret stands; it changes nothing that is stored.
func TestMergeDestinations(t *testing.T) {
	a, b := abi.Destination{Origin: "https://a.example"}, abi.Destination{Origin: "https://b.example"}
	stored := map[string][]abi.Destination{"x": append(make([]abi.Destination, 0, 4), a)}
	got := mergeDestinations(stored, map[string][]abi.Destination{"x": {b}, "y": {b}})
	if d := cmp.Diff(map[string][]abi.Destination{"x": {b}, "y": {b}}, got); d != "" {
		t.Error(d)
	}
	if len(stored) != 1 || len(stored["x"]) != 1 || strings.Contains(stored["x"][:2][1].Origin, "b") {
		t.Errorf("the stored ones were changed: %v", stored)
	}
	if got := mergeDestinations(nil, nil); len(got) != 0 {
		t.Error(got)
	}
}
