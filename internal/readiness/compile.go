package readiness

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/reprise-engine/reprise/pkg/expression"
)

// compile checks the expressions and scripts that were collected, all at once.
func (r *run) compile(ctx context.Context) error {
	e := r.checker.Evaluator
	failed, err := e.Check(ctx, textsOf(r.texts))
	if err != nil {
		return err
	}
	for i, err := range failed {
		if err != nil {
			p := r.texts[i]
			r.add(KindExpression, r.fails(p.node), p.node.Name, "parameters."+p.path, err.Error(), "%v: %s", err, clip(p.text))
		}
	}
	if failed, err = e.CheckScripts(ctx, textsOf(r.scripts)); err != nil {
		return err
	}
	for i, err := range failed {
		p := r.scripts[i]
		if err != nil {
			r.add(KindCode, r.fails(p.node), p.node.Name, "parameters."+p.path, "a script that does not compile", "the script does not compile: %v", err)
		}
		for _, name := range expression.Modules(p.text) {
			r.modules = append(r.modules, place{p.node, p.path, name})
		}
	}
	if len(r.modules) == 0 {
		return nil
	}
	missing, err := e.MissingModules(ctx, textsOf(r.modules))
	if err != nil {
		return err
	}
	for _, p := range r.modules {
		if slices.Contains(missing, p.text) {
			r.add(KindModule, r.fails(p.node), p.node.Name, "parameters."+p.path, p.text, "scripts cannot load the module %q here", p.text)
		}
	}
	return nil
}

func textsOf(places []place) []string {
	texts := make([]string, len(places))
	for i, p := range places {
		texts[i] = p.text
	}
	return texts
}

// clip shortens a text for a message.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
