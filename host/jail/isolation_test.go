package jail_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/jail"
)

// The members and their names are part of run.started.
func TestIsolationJSON(t *testing.T) {
	i := jail.Isolation{Level: jail.LevelPartial, Namespaces: []string{}, Landlock: 7, Seccomp: jail.SeccompLoad,
		Rlimits: true, UID: jail.UIDShared}
	got, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"level":"partial","namespaces":[],"landlock":7,"seccomp":"load","rlimits":true,"uid":"shared"}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A level is met by itself and by stronger ones.
func TestMeets(t *testing.T) {
	levels := []string{jail.LevelProcess, jail.LevelPartial, jail.LevelFull}
	for have, level := range levels {
		for want, required := range levels {
			if got := (jail.Isolation{Level: level}).Meets(required); got != (have >= want) {
				t.Errorf("%s meets %s: %v", level, required, got)
			}
		}
		if (jail.Isolation{Level: level}).Meets("strong") {
			t.Errorf("%s meets a level that does not exist", level)
		}
	}
}

// Whatever is less than promised is named.
func TestLacks(t *testing.T) {
	promised := jail.Isolation{Namespaces: []string{"network", "mount"}, Landlock: 7, Seccomp: jail.SeccompStrict,
		Rlimits: true, UID: jail.UIDOwn}
	if got := promised.Lacks(promised); len(got) > 0 {
		t.Errorf("lacks of itself: %q", got)
	}
	got := jail.Isolation{Namespaces: []string{"network"}, Landlock: 6, Seccomp: jail.SeccompLoad,
		UID: jail.UIDShared}.Lacks(promised)
	if d := cmp.Diff([]string{"mount namespace", "landlock", "seccomp", "rlimits", "uid"}, got); d != "" {
		t.Errorf("lacks (-want +got):\n%s", d)
	}
}

// Nothing is full unless files, sockets and processes have a wall beside the filters.
func TestFullHasTwoWalls(t *testing.T) {
	every := []string{"network", "mount", "pid"}
	for name, tc := range map[string]struct {
		namespaces []string
		landlock   int
		uid        string
		seccomp    string
		limits     bool
		want       string
	}{
		"everything":                         {every, 7, jail.UIDOwn, jail.SeccompStrict, true, jail.LevelFull},
		"namespaces":                         {every, 0, jail.UIDShared, jail.SeccompStrict, true, jail.LevelFull},
		"landlock with scopes":               {nil, 6, jail.UIDShared, jail.SeccompStrict, true, jail.LevelFull},
		"landlock before scopes":             {nil, 5, jail.UIDShared, jail.SeccompStrict, true, jail.LevelPartial},
		"landlock before scopes, an own uid": {nil, 5, jail.UIDOwn, jail.SeccompStrict, true, jail.LevelPartial},
		"no pid namespace":                   {every[:2], 0, jail.UIDShared, jail.SeccompStrict, true, jail.LevelPartial},
		"no pid namespace, landlock 5":       {every[:2], 5, jail.UIDShared, jail.SeccompStrict, true, jail.LevelPartial},
		"no pid namespace, an own uid":       {every[:2], 0, jail.UIDOwn, jail.SeccompStrict, true, jail.LevelFull},
		"no limits":                          {every, 7, jail.UIDOwn, jail.SeccompStrict, false, jail.LevelPartial},
		"only the filter for loading":        {every, 7, jail.UIDOwn, jail.SeccompLoad, true, jail.LevelPartial},
		"namespaces without network, scopes": {every[1:], 6, jail.UIDShared, jail.SeccompStrict, true, jail.LevelFull},
		"namespaces without network":         {every[1:], 5, jail.UIDOwn, jail.SeccompStrict, true, jail.LevelPartial},
		"nothing but limits":                 {nil, 0, jail.UIDShared, jail.SeccompOff, true, jail.LevelProcess},
	} {
		i := jail.Isolation{Namespaces: tc.namespaces, Landlock: tc.landlock, UID: tc.uid,
			Seccomp: tc.seccomp, Rlimits: tc.limits}
		if got := i.Judged().Level; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
