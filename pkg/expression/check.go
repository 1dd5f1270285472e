package expression

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"strings"
)

// Check reports which of some parameter texts are no valid expressions, without evaluating
// any: the error of each, nil for those that are. Texts without a leading "=" are always valid.
// The second result is an error of the engine.
func (e *Evaluator) Check(ctx context.Context, texts []string) ([]error, error) {
	found := make([]error, len(texts))
	var scripts []int
	for i, text := range texts {
		code, isExpression := strings.CutPrefix(text, "=")
		if !isExpression {
			continue
		}
		p := compiled.get(code)
		switch {
		case p.err != nil:
			found[i] = p.err
		case !p.fast:
			scripts = append(scripts, i)
		}
	}
	return found, e.each(scripts, func(of []int) error {
		p := &program{id: lastProgram.Add(1), mutates: true} // mutates: the VM need not keep it
		for _, i := range of {
			for _, s := range compiled.get(texts[i][1:]).segments {
				if s.code {
					p.segments = append(p.segments, segment{text: "(() => (" + s.text + "\n))", code: true, free: s.free})
				}
			}
		}
		_, err := e.evaluateScript(ctx, &Scope{}, 0, p)
		return err
	}, found)
}

// CheckScripts is Check for the scripts of Code nodes.
func (e *Evaluator) CheckScripts(ctx context.Context, sources []string) ([]error, error) {
	all := make([]int, len(sources))
	for i := range sources {
		all[i] = i
	}
	found := make([]error, len(sources))
	return found, e.each(all, func(of []int) error {
		var b strings.Builder
		for _, i := range of {
			// On one line with the script's first, so that errors name the right one.
			b.WriteString("(async function () {" + sources[i] + "\n});")
		}
		_, err := e.RunCode(ctx, &Scope{}, Code{Source: b.String(), Item: -1})
		return err
	}, found)
}

// each finds the bad ones among many: it tries all at once, which is nearly always enough,
// else one after another.
func (e *Evaluator) each(all []int, try func([]int) error, found []error) error {
	if len(all) == 0 || try(all) == nil {
		return nil
	}
	for _, i := range all {
		err := try([]int{i})
		if failed := (*Error)(nil); err != nil && !errors.As(err, &failed) {
			return err
		}
		found[i] = err
	}
	return nil
}

// Modules are the names of the modules that a script loads with require.
func Modules(source string) []string {
	tokens, _ := lex(source)
	seen := map[string]bool{}
	var names []string
	for i, t := range tokens {
		if t.kind != tokenIdent || t.text != "require" || i > 0 && (tokens[i-1].is(".") || tokens[i-1].is("?.")) {
			continue
		}
		r := &reader{tokens: tokens, at: i + 1}
		if name, ok := r.argument("(", ")"); ok && name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// MissingModules are those of some modules that scripts cannot load here.
func (e *Evaluator) MissingModules(ctx context.Context, names []string) ([]string, error) {
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	result, err := e.RunCode(ctx, &Scope{}, Code{
		Source:  "return names.filter((name) => { try { require(name); return false } catch { return true } })",
		Globals: map[string]json.RawMessage{"names": list}, Item: -1,
	})
	if err != nil {
		return nil, err
	}
	var missing []string
	err = json.Unmarshal(result.JSON, &missing)
	return missing, err
}
