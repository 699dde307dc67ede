package sandbox

import (
	"fmt"

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

// importSection admits functions of the list with their exact types, and
// nothing else (G4).
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

// clip bounds what a look-up copies; a cut name matches nothing on the list.
func clip(name []byte) []byte { return name[:min(len(name), importNameShown+1)] }

func (w *moduleWalk) refuseImport(rule string, at int, module, name []byte, why string) {
	e := fault(rule, at, "import %s of module %s %s", quoted(name), quoted(module), why)
	e.Import = string(clip(module)) + "." + string(clip(name))
	w.refuse(e)
}

// transport tells the kind of connector by its imports (G3).
func (w *moduleWalk) transport() Transport {
	for _, i := range w.m.Imports {
		if messageImports[i] {
			return TransportABI
		}
	}
	return TransportStdio
}

// allowedImports is the whole list of G4: names and exact signatures.
var allowedImports = listImports()

// messageImports are those that make an ABI connector.
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
