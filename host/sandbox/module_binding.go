package sandbox

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// bindingModules are the import modules that stand behind a binding of the
// manifest (G4), in the order of the contract.
var bindingModules = []struct{ module, binding string }{
	{abi.ModuleNetwork, "network"},
	{abi.ModuleBrowser, "browser"},
}

// CheckBindings refuses m with a *ModuleError when it imports the module of a
// binding that is not among declared, the names that its manifest has under
// runtime_requirements.bindings (G4).
func CheckBindings(m Module, declared []string) error {
	for _, b := range bindingModules {
		if m.Uses(b.module) && !slices.Contains(declared, b.binding) {
			i := slices.IndexFunc(m.Imports, func(i Import) bool { return i.Module == b.module })
			e := fault(RuleImportBinding, 0, "import %s needs the binding %q, which the manifest does not declare", m.Imports[i], b.binding)
			e.Import = m.Imports[i].String()
			return e
		}
	}
	return nil
}

// Codes of warnings (G25).
const (
	WarnNetworkNotImported = "network_not_imported"
	WarnBrowserNotImported = "browser_not_imported"
	WarnOptionalUnused     = "binding_optional_unused"
)

// A Warning tells an author that manifest and module do not fit, without
// refusing the module.
type Warning struct {
	Code    string
	Binding string
	Detail  string
}

// Warnings compares m with the bindings its manifest declares: name to
// required. Bindings without an import module of their own are passed over.
func Warnings(m Module, bindings map[string]bool) []Warning {
	var warnings []Warning
	for _, b := range bindingModules {
		required, declared := bindings[b.binding]
		if !declared || m.Uses(b.module) || b.binding == abi.BindingNetwork && m.Transport == TransportStdio { // which has lines for it
			continue
		}
		w := Warning{Code: WarnOptionalUnused, Binding: b.binding}
		w.Detail = fmt.Sprintf("the manifest lists the binding %q as optional and the module imports no function of %s", b.binding, b.module)
		if required {
			w.Code = b.binding + "_not_imported"
			w.Detail = fmt.Sprintf("the manifest requires the binding %q and the module imports no function of %s, so it cannot use it", b.binding, b.module)
		}
		warnings = append(warnings, w)
	}
	return warnings
}
