package conformance

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root of the repository, from here.
const root = "../.."

// proof is a test: a data file, or a function of a file.
type proof struct {
	path string // from the root, with slashes
	name string // of the function, "" for a data file
	line int
}

// shown is what a test says that it shows.
type shown struct {
	kind, quirk, text, note string
	proof
}

// found is what the tests of the repository say.
type found struct {
	assertions map[int][]shown
	reports    map[int][]proof
}

var (
	header    = regexp.MustCompile(`^(?:#|//) ([NI]) (\d{3})(?: \[([\d.]+)\])?: (.+)$`)
	looksLike = regexp.MustCompile(`^(?:#|//) ?[NI] ?\d+.*:`)
	remark    = regexp.MustCompile(`^(?:#|//) note: (.+)$`)
	dataRow   = regexp.MustCompile(`^# report (\d+)\b`)
	testName  = regexp.MustCompile(`^TestReports?(\d+(?:And\d+)*)`)
	quoted    = regexp.MustCompile("^[\"`]reports? (\\d+(?:(?:, | and |, and )\\d+)*)\\b")
	mentioned = regexp.MustCompile(`(?i)\breports? (\d+(?:(?:, | and |, and )\d+)*)`)
	number    = regexp.MustCompile(`\d+`)
)

// scan reads all tests of the repository.
func scan(t *testing.T) *found {
	t.Helper()
	all := &found{assertions: map[int][]shown{}, reports: map[int][]proof{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(path)
		switch {
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(path, ".txt") && strings.Contains(slashed, "/testdata/"):
			return all.dataFile(path)
		case strings.HasSuffix(path, "_test.go"):
			return all.goFile(path)
		}
		return nil
	})
	require.NoError(t, err)
	return all
}

func fromRoot(path string) string {
	return filepath.ToSlash(strings.TrimPrefix(path, filepath.FromSlash(root+"/")))
}

// dataFile reads the comment lines at the beginning of a data file. A file of
// testdata/conformance is about one assertion, whose number begins its name.
func (all *found) dataFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan() && strings.HasPrefix(s.Text(), "#"); {
		lines = append(lines, s.Text())
	}
	p := proof{path: fromRoot(path)}
	for _, line := range lines {
		if m := dataRow.FindStringSubmatch(line); m != nil {
			all.report(m[1], p)
		}
	}
	if filepath.Base(filepath.Dir(path)) != "conformance" {
		return nil
	}
	before := len(all.assertions)
	shows, err := all.headers(lines, p)
	if err != nil {
		return err
	}
	if len(shows) != 1 {
		return fmt.Errorf("%s: begins with %d assertions, want one (had %d)", path, len(shows), before)
	}
	if want := fmt.Sprintf("%03d_", shows[0]); !strings.HasPrefix(filepath.Base(path), want) {
		return fmt.Errorf("%s: is about assertion %d, so its name must begin with %s", path, shows[0], want)
	}
	return nil
}

// headers takes the assertions from comment lines.
func (all *found) headers(lines []string, p proof) ([]int, error) {
	var shows []int
	for i, line := range lines {
		m := header.FindStringSubmatch(line)
		if m == nil {
			if looksLike.MatchString(line) {
				return nil, fmt.Errorf("%s: %q is not of the form \"N 012: …\" or \"I 031 [7.34]: …\"", p.path, line)
			}
			continue
		}
		n, _ := strconv.Atoi(m[2])
		s := shown{kind: m[1], quirk: m[3], text: strings.TrimSpace(m[4]), proof: p}
		if i+1 < len(lines) {
			if note := remark.FindStringSubmatch(lines[i+1]); note != nil {
				s.note = strings.TrimSpace(note[1])
			}
		}
		all.assertions[n] = append(all.assertions[n], s)
		shows = append(shows, n)
	}
	return shows, nil
}

func (all *found) report(digits string, p proof) {
	for _, d := range number.FindAllString(digits, -1) {
		n, _ := strconv.Atoi(d)
		for _, known := range all.reports[n] {
			if known == p {
				return
			}
		}
		all.reports[n] = append(all.reports[n], p)
	}
}

// goFile reads the test functions of a Go file.
func (all *found) goFile(path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
			continue
		}
		p := proof{path: fromRoot(path), name: f.Name.Name, line: fset.Position(f.Pos()).Line}
		if m := testName.FindStringSubmatch(f.Name.Name); m != nil {
			all.report(m[1], p)
		}
		if f.Doc != nil {
			var lines []string
			for _, c := range f.Doc.List {
				lines = append(lines, c.Text)
			}
			if _, err := all.headers(lines, p); err != nil {
				return err
			}
			for _, m := range mentioned.FindAllStringSubmatch(strings.Join(lines, " "), -1) {
				all.report(m[1], p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if ok && text.Kind == token.STRING {
				if m := quoted.FindStringSubmatch(text.Value); m != nil {
					all.report(m[1], p)
				}
			}
			return true
		})
	}
	return nil
}

// link to a test from a page in docs.
func (p proof) link() string {
	dir, base := filepath.Split(p.path)
	dir = strings.TrimSuffix(dir, "/")
	for _, part := range []string{"/testdata/conformance", "/testdata/reports", "/testdata"} {
		if short, ok := strings.CutSuffix(dir, part); ok {
			dir = short
			break
		}
	}
	if p.name != "" {
		return fmt.Sprintf("[%s %s](../%s)", dir, p.name, p.path)
	}
	return fmt.Sprintf("[%s %s](../%s)", dir, base, p.path)
}

// links to tests, each once, in the order of their paths.
func links(proofs []proof) string {
	var list []string
	for _, p := range proofs {
		list = append(list, p.link())
	}
	sort.Strings(list)
	return strings.Join(list, "<br>")
}

// cell makes a text fit for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
