package abi_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

// frozenTypes are the wire enums whose numbers never change.
var frozenTypes = []string{"Errno", "Call", "Op", "KeyKind", "Kind", "Fault", "FrameFault"}

// TestNumbersAreFrozen compares every constant of a frozen type, and every import with its
// number, signature and whether it is a message, with testdata/frozen.txt. A new constant
// needs a line there; no line goes away.
func TestNumbersAreFrozen(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "frozen.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, typ := range frozenTypes {
		for _, c := range constants(t, typ) {
			fmt.Fprintf(&got, "%s %s %s\n", typ, c.Name(), c.Val())
		}
	}
	for _, f := range abi.Functions {
		fmt.Fprintf(&got, "Function %s.%s %d %s %v\n", f.Module, f.Name, f.Call, f.Signature(), f.Message)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("(-frozen +code):\n%s", diff)
	}
}

// TestNumbersAreDistinct: no two constants of a frozen type are equal.
func TestNumbersAreDistinct(t *testing.T) {
	for _, typ := range frozenTypes {
		all := constants(t, typ)
		for i, c := range all[1:] {
			if constant.Compare(c.Val(), token.EQL, all[i].Val()) {
				t.Errorf("%s and %s are both %s", all[i].Name(), c.Name(), c.Val())
			}
		}
	}
}

// constants returns the constants of a type of this package, or else of
// strictjson, by value.
func constants(t *testing.T, typ string) []*types.Const {
	t.Helper()
	for _, dir := range []string{".", "strictjson"} {
		if found := constantsIn(t, dir, typ); len(found) > 0 {
			return found
		}
	}
	t.Fatalf("no constant of type %s", typ)
	return nil
}

func constantsIn(t *testing.T, dir, typ string) []*types.Const {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Imports are not resolved, which no constant needs; so errors are ignored.
	check := types.Config{Error: func(error) {}, IgnoreFuncBodies: true}
	pkg, _ := check.Check("abi", fset, files, nil)
	var found []*types.Const
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		if named, ok := c.Type().(*types.Named); ok && named.Obj().Name() == typ {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *types.Const) int {
		x, _ := constant.Int64Val(a.Val())
		y, _ := constant.Int64Val(b.Val())
		return int(x - y)
	})
	return found
}

// TestErrnoNames: the text of an errno names it, as the constant does.
func TestErrnoNames(t *testing.T) {
	for _, c := range constants(t, "Errno") {
		n, _ := constant.Int64Val(c.Val())
		e := abi.Errno(n)
		if !e.Known() || e.String() != c.Name() || e.Error() != "sluice: "+c.Name() {
			t.Errorf("%s: known %v, %q, %q", c.Name(), e.Known(), e.String(), e.Error())
		}
	}
	if e := abi.Errno(999); e.Known() || e.String() != "errno(999)" {
		t.Errorf("errno 999: known %v, %q", e.Known(), e.String())
	}
}

// TestFunctionsHaveCalls: every import has a call of its own below 64.
func TestFunctionsHaveCalls(t *testing.T) {
	seen := map[abi.Call]string{}
	for _, f := range abi.Functions {
		if other, ok := seen[f.Call]; ok || f.Call >= 64 {
			t.Errorf("%s has call %d, other %q", f.Name, f.Call, other)
		}
		seen[f.Call] = f.Name
	}
}
