package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
)

// TestAbilities: inspect has words for everything that a connector can import, but for how it reads replies.
func TestAbilities(t *testing.T) {
	for _, f := range abi.Functions {
		if f.Call == abi.CallReply || f.Call == abi.CallRead || f.Call == abi.CallClose {
			continue
		}
		name := f.Module + "." + f.Name
		told := false
		for _, k := range app.Kinds {
			prefix, _ := k.Imports()
			told = told || prefix != "" && strings.HasPrefix(name, prefix)
		}
		for _, a := range abilities {
			told = told || slices.ContainsFunc(a.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		}
		if !told {
			t.Errorf("inspect does not tell of %s", name)
		}
	}
}
