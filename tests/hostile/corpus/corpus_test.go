package corpus_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"testing"

	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/tests/hostile/corpus"
)

// walkBytes is the memory that the walk of one hostile module may take, whatever the
// module declares.
const walkBytes = 1 << 20

// TestRefusedModules: the structure walk refuses each module by the rule that it
// breaks, in little memory.
func TestRefusedModules(t *testing.T) {
	for _, c := range corpus.Modules() {
		if !c.Refused() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			wasm := c.Wasm()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
			runtime.ReadMemStats(&after)

			var refused *sandbox.ModuleError
			if !errors.As(err, &refused) {
				t.Fatalf("CheckModule = %v, want a refusal by %s", err, c.Want)
			}
			if refused.Rule != c.Want {
				t.Errorf("refused by %s, want %s: %v", refused.Rule, c.Want, err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > walkBytes {
				t.Errorf("%d bytes allocated for a module of %d", got, len(wasm))
			}
		})
	}
}

// All other cases are well-formed connectors that get as far as their attack: they pass
// the walk and carry a manifest.
func TestRunnableModules(t *testing.T) {
	for _, c := range corpus.Modules() {
		if c.Refused() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			m, err := sandbox.CheckModule(c.Wasm(), sandbox.ModuleLimits{})
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(m.Manifest) {
				t.Errorf("manifest %q", m.Manifest)
			}
			if wantFiles := bytes.Contains(m.Manifest, []byte(`"filesystem"`)); wantFiles != c.Files {
				t.Errorf("Files is %v and the manifest says %v", c.Files, wantFiles)
			}
		})
	}
}

func TestCasesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	groups := map[corpus.Group]int{}
	for _, c := range corpus.Modules() {
		if c.Name == "" || c.Rule == "" || c.Want == "" || seen[c.Name] {
			t.Errorf("case %+v is incomplete or appears twice", c)
		}
		seen[c.Name] = true
		groups[c.Group]++
		if c.Want == corpus.Violation && c.Subtype == "" {
			t.Errorf("%s: a violation without subtype", c.Name)
		}
		if c.Want == corpus.TimedOut && c.Budgets == (corpus.Budgets{}) {
			t.Errorf("%s: would run for the default budget", c.Name)
		}
		if !c.Accepts(c.Want) || c.Accepts("completed by accident") {
			t.Errorf("%s: Accepts is wrong", c.Name)
		}
	}
	if groups[corpus.GroupRefused] < 60 {
		t.Errorf("%d refused modules, the plan asks for 60", groups[corpus.GroupRefused])
	}
}

// A case that differs between two builds would test something else each time.
func TestModulesAreReproducible(t *testing.T) {
	for _, c := range corpus.Modules() {
		if !bytes.Equal(c.Wasm(), c.Wasm()) {
			t.Errorf("%s: two builds differ", c.Name)
		}
	}
}
