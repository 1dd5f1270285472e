package arch

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
)

// clock are the functions of package time that read or wait for the clock.
var clock = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true,
	"AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true,
}

// Pure returns the places in a package where something else than its arguments
// decides: uses of the clock, go statements and select. Imports are the
// business of rules.
func (s *Source) Pure(dir string) []Violation {
	var found []Violation
	for _, f := range s.files {
		if f.test || f.dir != dir {
			continue
		}
		name, dot := localName(f.syntax, "time")
		if dot {
			found = append(found, s.at(f, f.syntax.Package, "imports time with a dot, which hides uses of the clock"))
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = append(found, s.at(f, n.Pos(), "starts a goroutine: the order of events must not depend on the scheduler"))
			case *ast.SelectStmt:
				found = append(found, s.at(f, n.Pos(), "has a select: its choice is random"))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && name != "" && x.Name == name && clock[n.Sel.Name] {
					found = append(found, s.at(f, n.Pos(), "uses time.%s: time comes in with events", n.Sel.Name))
				}
			}
			return true
		})
	}
	return found
}

// localName is the name under which a file knows an imported package, "" when
// it does not import it.
func localName(f *ast.File, imported string) (name string, dot bool) {
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != imported {
			continue
		}
		switch {
		case spec.Name == nil:
			return path.Base(imported), false
		case spec.Name.Name == ".":
			return "", true
		default:
			return strings.TrimPrefix(spec.Name.Name, "_"), false
		}
	}
	return "", false
}
