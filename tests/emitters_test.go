package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/timeline"
)

// TestEveryEventTypeHasAnEmitter: the API descriptions offer every type of the
// catalogue, so the packages of a run must emit each. Its name occurs there as an
// argument or a value, whole or as a prefix with its end, and not only in a case or
// comparison.
func TestEveryEventTypeHasAnEmitter(t *testing.T) {
	made := map[string]bool{}
	for _, room := range []string{"../host/run", "../host/browser"} {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				literals(f, made)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range timeline.Catalogue() {
		name := string(e.Type)
		end := strings.LastIndexByte(name, '_')
		if !made[name] && !(end > 0 && made[name[:end+1]] && made[name[end+1:]]) &&
			!made[strings.TrimPrefix(name, "run.assistance_")] {
			t.Errorf("%s is in the catalogue, and nothing makes one", name)
		}
	}
	for _, never := range []string{"node.suspend-failed", "channel.written", "variable.changed", "lease.handed-off",
		"replay.diverged"} {
		if _, known := timeline.Lookup(timeline.Type(never)); known || made[never] {
			t.Errorf("%s: known %v, made %v; it belongs to both or neither", never, known, made[never])
		}
	}
}

// literals collects the texts of a file, except those that are only compared with.
func literals(f *ast.File, into map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, s := range n.Body {
				ast.Inspect(s, func(m ast.Node) bool { return text(m, into) })
			}
			return false
		case *ast.BinaryExpr:
			return n.Op == token.ADD
		}
		return text(n, into)
	})
}

func text(n ast.Node, into map[string]bool) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return n.Op == token.ADD
	case *ast.BasicLit:
		if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
			into[s] = true
		}
	}
	return true
}
