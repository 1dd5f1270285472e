// Package arch holds the rules of which package may import what, each with
// its reason, and checks them on the source. Its test checks this repository.
//
// Production files are checked; tests may import helpers from anywhere unless
// a rule says otherwise.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Rule says what the packages it names may import. At least one of Only and
// Never is set.
type Rule struct {
	// Package is a directory below the root, "pkg/queue"; "pkg/..." is it and all
	// below it.
	Package string
	// Only, when not nil, lists the packages of this module that may be
	// imported; what is not of this module is free. Entries may end in "/...".
	Only []string
	// Never lists what may not be imported: packages of this module by
	// directory, others by import path. Entries may end in "/...".
	Never []string
	// Tests extends the rule to test files.
	Tests bool
	// Reason is printed with every violation.
	Reason string
}

// Violation is one place that breaks a rule.
type Violation struct {
	File    string // below the root, with slashes
	Line    int
	Message string
}

func (v Violation) String() string { return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Message) }

// Source is the parsed source of a module.
type Source struct {
	module string
	fset   *token.FileSet
	files  []*file
}

type file struct {
	dir, path string // below the root
	test      bool
	syntax    *ast.File
}

// Load parses the Go files below root, without those of testdata and hidden
// directories. module is the module's import path.
func Load(root, module string) (*Source, error) {
	s := &Source{module: module, fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != root && (base == "testdata" || strings.HasPrefix(base, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		return s.load(root, name)
	})
	return s, err
}

func (s *Source) load(root, name string) error {
	below, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	below = filepath.ToSlash(below)
	syntax, err := parser.ParseFile(s.fset, below, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	s.files = append(s.files, &file{
		dir: path.Dir(below), path: below, test: strings.HasSuffix(below, "_test.go"), syntax: syntax,
	})
	return nil
}

// Packages lists the directories with production files, sorted.
func (s *Source) Packages() []string {
	seen := map[string]bool{}
	for _, f := range s.files {
		if !f.test {
			seen[f.dir] = true
		}
	}
	dirs := make([]string, 0, len(seen))
	for dir := range seen {
		dirs = append(dirs, dir)
	}
	sort.Strings(dirs)
	return dirs
}

// Imports returns the imports that break a rule.
func (s *Source) Imports(rules []Rule) []Violation {
	var found []Violation
	for _, f := range s.files {
		for _, spec := range f.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the parser accepted it, so it is a string
			}
			own, ours := strings.CutPrefix(imported, s.module+"/")
			for _, r := range rules {
				if f.test && !r.Tests || !matches(r.Package, f.dir) {
					continue
				}
				if r.forbids(f.dir, own, imported, ours) {
					found = append(found, s.at(f, spec.Pos(), "imports %s: %s", own, r.Reason))
				}
			}
		}
	}
	return found
}

func (r *Rule) forbids(dir, own, imported string, ours bool) bool {
	for _, never := range r.Never {
		if matches(never, own) || matches(never, imported) {
			return true
		}
	}
	if r.Only == nil || !ours || own == dir {
		return false
	}
	for _, allowed := range r.Only {
		if matches(allowed, own) {
			return false
		}
	}
	return true
}

// matches reports whether a package is meant by a pattern.
func matches(pattern, pkg string) bool {
	parent, below := strings.CutSuffix(pattern, "/...")
	if below {
		return pkg == parent || strings.HasPrefix(pkg, parent+"/")
	}
	return pkg == pattern
}

func (s *Source) at(f *file, pos token.Pos, format string, args ...any) Violation {
	return Violation{f.path, s.fset.Position(pos).Line, fmt.Sprintf(format, args...)}
}

// Comments returns the packages that have no package comment, or several.
func (s *Source) Comments() []Violation {
	count, first := map[string]int{}, map[string]*file{}
	var found []Violation
	for _, f := range s.files {
		if f.test {
			continue
		}
		if first[f.dir] == nil {
			first[f.dir] = f
		}
		if f.syntax.Doc == nil || strings.TrimSpace(f.syntax.Doc.Text()) == "" {
			continue
		}
		if count[f.dir]++; count[f.dir] == 2 {
			found = append(found, s.at(f, f.syntax.Package, "second package comment of %s: keep one, in one file", f.dir))
		}
	}
	for _, dir := range s.Packages() {
		if count[dir] == 0 {
			f := first[dir]
			found = append(found, s.at(f, f.syntax.Package, "%s has no package comment: say what the package is for", dir))
		}
	}
	return found
}

// Commands returns the packages below cmd with more than most lines of code.
func (s *Source) Commands(most int) []Violation {
	lines, last := map[string]int{}, map[string]*file{}
	for _, f := range s.files {
		if !f.test && matches("cmd/...", f.dir) {
			lines[f.dir] += s.fset.Position(f.syntax.FileEnd).Line
			last[f.dir] = f
		}
	}
	var found []Violation
	for _, dir := range s.Packages() {
		if lines[dir] > most {
			found = append(found, s.at(last[dir], last[dir].syntax.Package,
				"%s has %d lines, more than %d: flags, wiring and exit code are all a main package does; move the rest to internal", dir, lines[dir], most))
		}
	}
	return found
}
