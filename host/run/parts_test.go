package run

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestPartsKeepTheirState: whoever names a part of a run calls a method of it. No part
// reads or writes a field of another, and none grows into a second run.
func TestPartsKeepTheirState(t *testing.T) {
	const most = 60 // methods of a type
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	methods, parts := map[string]map[string]bool{}, map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if owner := receiver(n); owner != "" {
					if methods[owner] == nil {
						methods[owner] = map[string]bool{}
					}
					methods[owner][n.Name.Name] = true
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "parts" {
					collect(s, parts)
				}
			}
			return true
		})
	}
	for name := range methods["gapList"] { // embedded
		methods["gaps"][name] = true
	}
	for owner, m := range methods {
		if len(m) > most {
			t.Errorf("%s has %d methods", owner, len(m))
		}
	}
	if len(parts) < 10 {
		t.Fatalf("found the parts %v", parts)
	}
	for _, file := range parsed {
		ast.Inspect(file, func(n ast.Node) bool {
			outer, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if inner, ok := outer.X.(*ast.SelectorExpr); ok {
				if owner, ok := parts[inner.Sel.Name]; ok && !methods[owner][outer.Sel.Name] {
					t.Errorf("%s: %s.%s is a field of another part", set.Position(outer.Pos()), inner.Sel.Name, outer.Sel.Name)
				}
			}
			return true
		})
	}
}

// collect notes which fields of the struct parts are parts: pointers to types of this
// package that embed it.
func collect(s *ast.StructType, parts map[string]string) {
	for _, f := range s.Fields.List {
		star, ok := f.Type.(*ast.StarExpr)
		if !ok || len(f.Names) != 1 {
			continue
		}
		if id, ok := star.X.(*ast.Ident); ok && id.Name != "Plan" {
			parts[f.Names[0].Name] = id.Name
		}
	}
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
