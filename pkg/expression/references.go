package expression

import (
	"encoding/json"
	"sort"
)

// FindReferences reads what a parameter tree refers to. code also looks into
// texts that are no expressions (the source of Code nodes).
func FindReferences(raw json.RawMessage, code bool) References {
	f := finder{nodes: map[string]bool{}}
	python := code && isPython(raw)
	eachText(raw, func(text string) {
		if len(text) > 0 && text[0] == '=' {
			for _, p := range split(text[1:]) {
				if p.code {
					f.scan(p.text)
				}
			}
		}
		switch {
		case python:
			f.scanPython(text)
		case code && (len(text) == 0 || text[0] != '='):
			f.scan(text)
		}
	})
	for name := range f.nodes {
		f.found.Nodes = append(f.found.Nodes, name)
	}
	sort.Strings(f.found.Nodes)
	return f.found
}

type finder struct {
	nodes map[string]bool
	found References
}

// scan looks through one piece of JavaScript. Text that cannot be taken apart is
// read as far as it goes: it will not run either.
func (f *finder) scan(source string) {
	tokens, _ := lex(source)
	for i, t := range tokens {
		if i > 0 && (tokens[i-1].is(".") || tokens[i-1].is("?.")) {
			switch t.text {
			case "item", "pairedItem", "itemMatching", "getPairedItem":
				f.found.Lineage = true
			}
			continue
		}
		if t.kind == tokenString && (t.text[1:len(t.text)-1] == "item" || t.text[1:len(t.text)-1] == "pairedItem") &&
			i > 0 && tokens[i-1].is("[") {
			f.found.Lineage = true // $('X')['item']
		}
		if t.kind != tokenIdent {
			continue
		}
		r := &reader{tokens: tokens, at: i + 1}
		switch t.text {
		case "$":
			f.call(r, true)
		case "$items":
			f.items(r)
		case "$node":
			if r.peek().is(".") || r.peek().is("?.") || r.peek().is("[") {
				if name, ok := r.key(); ok {
					f.nodes[name] = true
					continue
				}
			}
			f.found.All = true
		case "$getPairedItem", "$evaluateExpression", "eval":
			f.found.All, f.found.Lineage = true, true
		case "Function":
			if r.peek().is("(") {
				f.found.All, f.found.Lineage = true, true
			}
		}
	}
}

// call reads $(name) and the accessor behind it.
func (f *finder) call(r *reader, accessor bool) {
	if !r.peek().is("(") {
		return // a name of the script's own, jQuery style
	}
	name, ok := r.argument("(", ")")
	if !ok {
		f.found.All, f.found.AllRuns = true, true
		return
	}
	f.nodes[name] = true
	if !accessor {
		return
	}
	if !r.peek().is(".") && !r.peek().is("?.") && !r.peek().is("[") {
		return
	}
	switch member, ok := r.key(); {
	case !ok: // computed
		f.found.AllRuns = true
	case member == "first", member == "last", member == "all":
		f.runs(r)
	}
}

// runs notes a call with a second argument, the run index.
func (f *finder) runs(r *reader) {
	if !r.accept("(") {
		return
	}
	if r.argumentCount() > 1 {
		f.found.AllRuns = true
	}
}

// items reads $items(name, output, run).
func (f *finder) items(r *reader) {
	if !r.accept("(") {
		return
	}
	if r.accept(")") {
		return
	}
	name, ok := unquote(r.peek())
	if !ok {
		f.found.All, f.found.AllRuns = true, true
		return
	}
	f.nodes[name] = true
	if r.argumentCount() > 2 {
		f.found.AllRuns = true
	}
}

// argumentCount counts the arguments up to the closing bracket.
func (r *reader) argumentCount() int {
	count, depth := 0, 0
	for r.at < len(r.tokens) {
		t := r.take()
		switch {
		case depth == 0 && t.is(")"):
			return count
		case t.kind == tokenTemplateHead, t.is("("), t.is("["), t.is("{"):
			depth++
		case t.kind == tokenTemplateTail, t.is(")"), t.is("]"), t.is("}"):
			depth--
		}
		if count == 0 || depth == 0 && t.is(",") {
			count++
		}
	}
	return count
}
