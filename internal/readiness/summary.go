package readiness

import (
	"cmp"
	"slices"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Summary is what many workflows lack.
type Summary struct {
	Workflows int       `json:"workflows"`
	Runs      int       `json:"canRun"`
	Missing   []Missing `json:"missing"` // what most workflows lack first
}

// Missing is one thing that workflows lack.
type Missing struct {
	Kind Kind   `json:"kind"`
	What string `json:"what"`
	// Workflows that lack it, and those among them that lack nothing else.
	Workflows int `json:"workflows"`
	Alone     int `json:"onlyThis"`
	// Places where it is missing.
	Places int `json:"places"`
}

// Summarize counts what reports have in common. Warnings are not counted: with them
// workflows run.
func Summarize(reports []*Report) Summary {
	type key struct {
		kind Kind
		what string
	}
	s := Summary{Workflows: len(reports), Missing: []Missing{}}
	byKey := map[key]*Missing{}
	for _, r := range reports {
		if r.Runs {
			s.Runs++
		}
		here := map[key]bool{}
		for _, f := range r.Findings {
			if f.Severity != workflow.SeverityError {
				continue
			}
			k := key{f.Kind, f.What}
			if byKey[k] == nil {
				byKey[k] = &Missing{Kind: f.Kind, What: f.What}
			}
			byKey[k].Places++
			if !here[k] {
				here[k] = true
				byKey[k].Workflows++
			}
		}
		if len(here) == 1 {
			for k := range here {
				byKey[k].Alone++
			}
		}
	}
	for _, m := range byKey {
		s.Missing = append(s.Missing, *m)
	}
	slices.SortFunc(s.Missing, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(b.Workflows, a.Workflows), cmp.Compare(b.Alone, a.Alone), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.What, b.What))
	})
	return s
}
