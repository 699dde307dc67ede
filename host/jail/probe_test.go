//go:build linux

package jail_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/jail"
)

// A machine with every layer is reported so.
func TestProbe(t *testing.T) {
	need(t, "namespaces", "landlock", "seccomp")
	l := launcher(t, jail.Options{})
	r, err := l.Probe(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := states(r); !cmp.Equal(got, map[string]string{
		"uid": "ok", "namespaces": "ok", "landlock": "ok", "seccomp": "ok", "limits": "ok", "group": groupState(l),
	}) {
		t.Errorf("layers %+v", r.Layers)
	}
}

// On a machine where something is missing, what is missing is named
// with a cause and a remedy, and what is there is still there.
func TestProbeOfPoorerMachines(t *testing.T) {
	need(t, "namespaces", "landlock", "seccomp")
	for _, tc := range []struct {
		name    string
		walls   jail.Walls
		level   string
		missing []string
	}{
		{"no namespaces", jail.Walls{NoNamespaces: true, NoUID: true}, jail.LevelFull, []string{"uid", "namespaces"}},
		{"no landlock", jail.Walls{NoLandlock: true}, jail.LevelFull, []string{"landlock"}},
		{"no seccomp", jail.Walls{NoSeccomp: true}, jail.LevelPartial, []string{"seccomp"}},
		{"only seccomp", jail.Walls{NoNamespaces: true, NoUID: true, NoLandlock: true}, jail.LevelPartial,
			[]string{"uid", "namespaces", "landlock"}},
		{"nothing", jail.Walls{Off: true}, jail.LevelProcess, []string{"uid", "namespaces", "landlock", "seccomp", "limits"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := launcher(t, jail.Options{Walls: tc.walls})
			r, err := l.Probe(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if tc.walls.NoNamespaces && !tc.walls.Off && r.Isolation.Landlock < 6 {
				tc.level = jail.LevelPartial // the second wall before sockets and processes came with that version
			}
			want := map[string]string{"uid": "ok", "namespaces": "ok", "landlock": "ok", "seccomp": "ok", "limits": "ok",
				"group": groupState(l)}
			for _, name := range tc.missing {
				want[name] = "missing"
			}
			if d := cmp.Diff(want, states(r)); d != "" {
				t.Errorf("layers (-want +got):\n%s", d)
			}
			for _, l := range r.Layers {
				if explained := l.Cause != "" && l.Remedy != ""; explained != (l.State == jail.LayerMissing) {
					t.Errorf("layer %+v", l)
				}
			}
			if r.Isolation.Level != tc.level || !r.Isolation.Meets(tc.level) {
				t.Errorf("isolation %+v, want level %s", r.Isolation, tc.level)
			}
		})
	}
}

// groupState depends on where the tests run.
func groupState(l *jail.Launcher) string {
	if l.Grouped() {
		return "ok"
	}
	return "missing"
}

func states(r jail.Report) map[string]string {
	got := map[string]string{}
	for _, l := range r.Layers {
		got[l.Name] = l.State
	}
	return got
}
