package sandbox

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

const kindFunction = 0x00

var kindNames = [...]string{"function", "table", "memory", "global", "tag"}

func kindName(kind byte) string {
	if int(kind) < len(kindNames) {
		return kindNames[kind]
	}
	return fmt.Sprintf("thing of kind %d", kind)
}

// importSection accepts only functions on the allow-list, with their exact types.
func (w *moduleWalk) importSection() {
	n := w.count(RuleImports, "imports", w.lim.Imports, 4)
	for range n {
		at := w.pos
		module, name := w.name(), w.name()
		kind := w.byte()
		if w.err != nil {
			return
		}
		if kind != kindFunction {
			w.refuseImport(RuleImportKind, at, module, name, "is a "+kindName(kind)+"; only functions can be imported")
			return
		}
		i := w.typeIndex()
		if w.err != nil {
			return
		}
		known := Import{string(clip(module)), string(clip(name))}
		switch sig, ok := allowedImports[known]; {
		case !ok:
			w.refuseImport(RuleImportUnknown, at, module, name, "is not offered")
			return
		case !w.isType(i, sig):
			w.refuseImport(RuleImportSignature, at, module, name, "is declared with another type than "+sig)
			return
		}
		w.m.Imports = append(w.m.Imports, known)
		w.importedFuncs++
	}
}

// clip limits what a look-up copies. A name that was cut is not on the allow-list.
func clip(name []byte) []byte { return name[:min(len(name), importNameShown+1)] }

func (w *moduleWalk) refuseImport(rule string, at int, module, name []byte, why string) {
	e := fault(rule, at, "import %s of module %s %s", quoted(name), quoted(module), why)
	e.Import = string(clip(module)) + "." + string(clip(name))
	w.refuse(e)
}

// transport determines the kind of connector from its imports.
func (w *moduleWalk) transport() Transport {
	for _, i := range w.m.Imports {
		if messageImports[i] {
			return TransportABI
		}
	}
	return TransportStdio
}

// allowedImports is everything a module may import: names and exact signatures.
var allowedImports = listImports()

// messageImports are the imports that make a module an ABI connector.
var messageImports = listMessages()

func listImports() map[Import]string {
	list := make(map[Import]string, len(abi.Functions)+len(wasiFunctions))
	for _, f := range abi.Functions {
		list[Import{f.Module, f.Name}] = f.Signature()
	}
	for _, f := range wasiFunctions {
		list[Import{abi.ModuleWASI, f.name}] = f.signature
	}
	return list
}

func listMessages() map[Import]bool {
	list := make(map[Import]bool)
	for _, f := range abi.Functions {
		if f.Message {
			list[Import{f.Module, f.Name}] = true
		}
	}
	return list
}

// CheckBindings returns a *ModuleError if m imports the module of a binding that is not in declared, the names under
// runtime_requirements.bindings of its manifest.
func CheckBindings(m Module, declared []string) error {
	for _, b := range abi.BindingModules {
		if m.Uses(b.Module) && !slices.Contains(declared, b.Binding) {
			i := slices.IndexFunc(m.Imports, func(i Import) bool { return i.Module == b.Module })
			e := fault(RuleImportBinding, 0, "import %s needs the binding %q, which the manifest does not declare",
				m.Imports[i], b.Binding)
			e.Import = m.Imports[i].String()
			return e
		}
	}
	return nil
}

// Codes of warnings.
const (
	WarnNetworkNotImported = "network_not_imported"
	WarnBrowserNotImported = "browser_not_imported"
	WarnOptionalUnused     = "binding_optional_unused"
)

// A Warning tells an author that manifest and module do not match. The module is not refused.
type Warning struct {
	Code    string
	Binding string
	Detail  string
}

// Warnings compares m with the bindings of its manifest, a map from name to whether it is required. It ignores bindings
// that have no import module.
func Warnings(m Module, bindings map[string]bool) []Warning {
	var warnings []Warning
	for _, b := range abi.BindingModules {
		required, declared := bindings[b.Binding]
		// which has lines for it
		if !declared || m.Uses(b.Module) || b.Binding == abi.BindingNetwork && m.Transport == TransportStdio {
			continue
		}
		w := Warning{Code: WarnOptionalUnused, Binding: b.Binding}
		w.Detail = fmt.Sprintf("the manifest lists the binding %q as optional and the module imports no function of %s",
			b.Binding, b.Module)
		if required {
			w.Code = b.Binding + "_not_imported"
			w.Detail = fmt.Sprintf(
				"the manifest requires the binding %q and the module imports no function of %s, so it cannot use it",
				b.Binding, b.Module)
		}
		warnings = append(warnings, w)
	}
	return warnings
}

// wasiFunctions are the functions of WASI preview 1 that a module can import, with signatures as in
// abi.Function.Signature. proc_raise is absent: no current toolchain imports it, and a signal has no meaning in a
// worker.
var wasiFunctions = []struct{ name, signature string }{
	{"args_get", "ii>i"},
	{"args_sizes_get", "ii>i"},
	{"environ_get", "ii>i"},
	{"environ_sizes_get", "ii>i"},
	{"clock_res_get", "ii>i"},
	{"clock_time_get", "iIi>i"},
	{"random_get", "ii>i"},

	{"fd_advise", "iIIi>i"},
	{"fd_allocate", "iII>i"},
	{"fd_close", "i>i"},
	{"fd_datasync", "i>i"},
	{"fd_fdstat_get", "ii>i"},
	{"fd_fdstat_set_flags", "ii>i"},
	{"fd_fdstat_set_rights", "iII>i"},
	{"fd_filestat_get", "ii>i"},
	{"fd_filestat_set_size", "iI>i"},
	{"fd_filestat_set_times", "iIIi>i"},
	{"fd_pread", "iiiIi>i"},
	{"fd_prestat_get", "ii>i"},
	{"fd_prestat_dir_name", "iii>i"},
	{"fd_pwrite", "iiiIi>i"},
	{"fd_read", "iiii>i"},
	{"fd_readdir", "iiiIi>i"},
	{"fd_renumber", "ii>i"},
	{"fd_seek", "iIii>i"},
	{"fd_sync", "i>i"},
	{"fd_tell", "ii>i"},
	{"fd_write", "iiii>i"},

	{"path_create_directory", "iii>i"},
	{"path_filestat_get", "iiiii>i"},
	{"path_filestat_set_times", "iiiiIIi>i"},
	{"path_link", "iiiiiii>i"},
	{"path_open", "iiiiiIIii>i"},
	{"path_readlink", "iiiiii>i"},
	{"path_remove_directory", "iii>i"},
	{"path_rename", "iiiiii>i"},
	{"path_symlink", "iiiii>i"},
	{"path_unlink_file", "iii>i"},

	{"poll_oneoff", "iiii>i"},
	{"proc_exit", "i>"},
	{"sched_yield", ">i"},

	// Sockets exist, so that programs link, and answer ENOTSUP.
	{"sock_accept", "iii>i"},
	{"sock_recv", "iiiiii>i"},
	{"sock_send", "iiiii>i"},
	{"sock_shutdown", "ii>i"},
}
