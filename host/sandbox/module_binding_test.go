package sandbox_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/sandbox"
)

var (
	networked = sandbox.Module{Imports: []sandbox.Import{{Module: "sluice_v1", Name: "emit"},
		{Module: "sluice_v1_network", Name: "request"}}}
	plain = sandbox.Module{Imports: []sandbox.Import{{Module: "sluice_v1", Name: "emit"}}}
)

// A binding's module needs the binding in the manifest.
func TestCheckBindings(t *testing.T) {
	if err := sandbox.CheckBindings(plain, nil); err != nil {
		t.Error(err)
	}
	if err := sandbox.CheckBindings(networked, []string{"interactive", "network"}); err != nil {
		t.Error(err)
	}
	var refused *sandbox.ModuleError
	err := sandbox.CheckBindings(networked, []string{"browser"})
	if !errors.As(err, &refused) {
		t.Fatalf("CheckBindings = %v", err)
	}
	if refused.Rule != sandbox.RuleImportBinding || !refused.EscapeAttempt() ||
		refused.Import != "sluice_v1_network.request" || refused.EscapeKind() != "network-escape" {
		t.Errorf("refusal %+v, kind %s", refused, refused.EscapeKind())
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name     string
		module   sandbox.Module
		bindings map[string]bool
		want     []string
	}{
		{"nothing declared", plain, nil, nil},
		{"used", networked, map[string]bool{"network": true}, nil},
		{"required and not imported", plain, map[string]bool{"network": true, "browser": true},
			[]string{sandbox.WarnNetworkNotImported, sandbox.WarnBrowserNotImported}},
		{"optional and not imported", plain, map[string]bool{"network": false, "browser": false},
			[]string{sandbox.WarnOptionalUnused, sandbox.WarnOptionalUnused}},
		{"by lines", sandbox.Module{Transport: sandbox.TransportStdio}, map[string]bool{"network": true, "browser": true},
			[]string{sandbox.WarnBrowserNotImported}},
		{"without a module of its own", plain, map[string]bool{"filesystem": true, "interactive": true}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, w := range sandbox.Warnings(tt.module, tt.bindings) {
				got = append(got, w.Code)
				if _, declared := tt.bindings[w.Binding]; !declared || w.Detail == "" {
					t.Errorf("warning %+v", w)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
