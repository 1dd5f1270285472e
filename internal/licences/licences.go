// Package licences looks after the licences of what the programs are made of: it lists the modules
// that are linked into them, with the Go program and the module cache only, and tells the
// licence from the text that each module comes with. Its test refuses what is not on
// the list of licences that may be, and keeps THIRD_PARTY_LICENSES.txt, which goes wherever the
// programs go, up to date: `go generate ./internal/licences` writes it.
package licences

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:generate go test . -run TestThirdPartyLicences -rewrite

// Module is somebody else's work in the programs: a Go module and its directory, or a file that is embedded
// and the file of its licence.
type Module struct {
	Path, Dir string
}

// Targets are the systems that the programs are built for; they may need other modules.
var Targets = []string{"linux/amd64", "linux/arm64", "darwin/arm64"}

// Modules lists the modules that packages, such as ./cmd/..., are built from in dir, for all
// Targets. It asks no network.
func Modules(ctx context.Context, dir string, packages ...string) ([]Module, error) {
	found := map[string]string{}
	for _, target := range Targets {
		system, processor, _ := strings.Cut(target, "/")
		args := append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}"}, packages...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			return nil, fmt.Errorf("list modules for %s: %w", target, err)
		}
		for line := range strings.Lines(string(out)) {
			if path, at, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				found[path] = at
			}
		}
	}
	var modules []Module
	for path, at := range found {
		modules = append(modules, Module{path, at})
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

var fileName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|copyright)([.-].*)?$`)

// Texts are the texts of a module's licences and notices, in the order of their names.
func (m Module) Texts() ([]string, error) {
	var paths []string
	if strings.HasSuffix(m.Dir, ".LICENSE") {
		paths = []string{m.Dir}
	} else {
		files, err := os.ReadDir(m.Dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		for _, f := range files {
			if f.Type().IsRegular() && fileName.MatchString(f.Name()) {
				paths = append(paths, filepath.Join(m.Dir, f.Name()))
			}
		}
	}
	var texts []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	return texts, nil
}

// Files are files of others that are kept in a source tree, and embedded: each NAME.LICENSE below dir is
// the licence of the files NAME.* beside it.
func Files(dir string) (modules []Module, err error) {
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(path, ".LICENSE"); ok && err == nil && !entry.IsDir() {
			modules = append(modules, Module{Path: filepath.ToSlash(name), Dir: path})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for licences in %s: %w", dir, err)
	}
	return modules, nil
}

// Allowed are the licences that may be in the programs, by their SPDX names, with sentences of each that no
// other one has all of. More of them may be in one text.
var Allowed = []struct {
	Name    string
	Phrases []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004", "grant of patent license"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice shall be included"}},
	{"BSD-3-Clause", []string{"redistributions in binary form must reproduce", "neither the name"}},
	{"BSD-2-Clause", []string{"redistributions in binary form must reproduce", "this list of conditions and the following disclaimer in the documentation"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}},
	{"Apache-2.0", []string{"licensed under the apache license, version 2.0", "you may not use this file except in compliance"}},
	{"Unicode-3.0", []string{"unicode license v3", "permission is hereby granted, free of charge"}},
	{"MPL-2.0", []string{"mozilla public license version 2.0", "covered software"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// Refused are words of licences that ask for more than to be named. A text with one of them is not
// allowed whatever else it says; MPL-2.0 names the first three as ones that may be added.
var Refused = []string{
	"gnu general public license", "gnu lesser general public license", "gnu affero general public license",
	"server side public license", "business source license", "commons clause", "elastic license", "sustainable use license",
	"non-commercial", "noncommercial",
}

// Identify tells the licences of a text; none when it is not known, or not allowed.
func Identify(text string) (names []string) {
	words := strings.ToLower(strings.Join(strings.Fields(text), " "))
	mozilla := false
	for _, l := range Allowed {
		all := true
		for _, phrase := range l.Phrases {
			all = all && strings.Contains(words, phrase)
		}
		if all && !slices.Contains(names, l.Name) && (l.Name != "BSD-2-Clause" || !slices.Contains(names, "BSD-3-Clause")) {
			names = append(names, l.Name)
			mozilla = mozilla || l.Name == "MPL-2.0"
		}
	}
	for i, word := range Refused {
		if strings.Contains(words, word) && (!mozilla || i > 2) {
			return nil
		}
	}
	return names
}

// Notice is one text and who has it.
type Notice struct {
	Modules  []string
	Licences []string
	Text     string
}

// Notices are the texts of modules, equal ones once. A module without an allowed licence is an error
// that names it.
func Notices(modules []Module) ([]Notice, error) {
	byText := map[string]*Notice{}
	var notices []*Notice
	var problems []error
	for _, m := range modules {
		texts, err := m.Texts()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		known := false
		for _, text := range texts {
			licences := Identify(text)
			known = known || len(licences) > 0
			n := byText[text]
			if n == nil {
				n = &Notice{Licences: licences, Text: text}
				byText[text] = n
				notices = append(notices, n)
			}
			if !slices.Contains(n.Modules, m.Path) {
				n.Modules = append(n.Modules, m.Path)
			}
		}
		if !known {
			problems = append(problems, fmt.Errorf("module %s has no licence that is allowed (%d texts in %s): leave it out, or add its licence to internal/licences after reading it", m.Path, len(texts), m.Dir))
		}
	}
	out := make([]Notice, len(notices))
	for i, n := range notices {
		out[i] = *n
	}
	return out, errors.Join(problems...)
}

// Write writes notices as a text. It has no versions, so that it changes only when a licence does.
func Write(w io.Writer, notices []Notice) error {
	_, err := io.WriteString(w, "reprise contains software of others, under the licences below.\n")
	for _, n := range notices {
		if err == nil {
			licences := strings.Join(n.Licences, ", ")
			if licences == "" {
				licences = "notice"
			}
			_, err = fmt.Fprintf(w, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), licences, strings.Join(n.Modules, ", "), n.Text)
		}
	}
	return err
}
