//go:build linux

package jail_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/jail"
)

// S12: the environment is replaced, whatever the host's is. S10: the command is "worker".
func TestEnvironmentIsReplaced(t *testing.T) {
	t.Setenv("SLUICE_OWNER_SECRET", "must not pass")
	_, r := run(t, launcher(t, jail.Options{}), order{}, nil)
	want := []string{"GOGC=off", "GOMAXPROCS=2", "GOMEMLIMIT=201326592", "GOTRACEBACK=none"}
	slices.Sort(r.Arrived.Env)
	if d := cmp.Diff(want, r.Arrived.Env); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
	if len(r.Arrived.Args) != 0 {
		t.Errorf("arguments after the command: %q", r.Arrived.Args)
	}
}

// S14, S20: on a machine with every layer a worker is fully isolated, and says so.
func TestEveryLayerHolds(t *testing.T) {
	_, r := run(t, launcher(t, jail.Options{}), order{Seal: true}, nil)
	t.Logf("%+v", r.Isolation)
	if r.Isolation.Level != jail.LevelFull {
		t.Errorf("isolation %+v", r.Isolation)
	}
}
