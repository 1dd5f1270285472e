package expression

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Evaluate evaluates one parameter value (with its leading "=") for one input
// item. Errors that n8n swallows give undefined; its own errors (an unknown or
// unexecuted node, a missing paired item, bad syntax …) are returned as *Error.
// Any other error means that the expression could not be evaluated at all: it
// reached a limit, or ctx ended.
func (e *Evaluator) Evaluate(ctx context.Context, s *Scope, item int, text string) (Value, error) {
	code, isExpression := strings.CutPrefix(text, "=")
	if !isExpression {
		return Value{JSON: quote(text)}, nil
	}
	p := compiled.get(code)
	if p.err != nil {
		return Value{}, p.err
	}
	if p.fast {
		v, ok, err := s.evaluateFast(p, item)
		if ok || err != nil {
			return v, err
		}
	}
	return e.evaluateScript(ctx, s, item, p)
}

// evaluateFast evaluates a program without JavaScript; ok is false when a
// value turned out to need it.
func (s *Scope) evaluateFast(p *program, item int) (v Value, ok bool, err error) {
	if p.single() {
		return s.fast(p.segments[0].fast, item)
	}
	var b strings.Builder
	for _, segment := range p.segments {
		if !segment.code {
			b.WriteString(segment.text)
			continue
		}
		v, ok, err := s.fast(segment.fast, item)
		if !ok || err != nil {
			return Value{}, false, err
		}
		text, ok := render(v)
		if !ok {
			return Value{}, false, nil
		}
		b.WriteString(text)
	}
	return Value{JSON: quote(b.String())}, true, nil
}

func (s *Scope) fast(f *fast, index int) (v Value, ok bool, err error) {
	switch f.root {
	case rootLiteral:
		return f.literal, true, nil
	case rootItem:
		item, found := s.inputItem(index)
		if !found {
			return undefined, true, nil
		}
		if f.which == "binary" && item.Binary == nil {
			v, ok = follow(Value{JSON: json.RawMessage("{}")}, f.keys[1:])
			return v, ok, nil
		}
		v, ok = followItem(item, f.keys)
		return v, ok, nil
	case rootInput:
		return s.fastItems(s.input(), f)
	case rootNode:
		if f.which == "item" {
			item, err := s.paired(f.node, index)
			if err != nil {
				return Value{}, false, err
			}
			v, ok = followItem(item, f.keys)
			return v, ok, nil
		}
		items, err := s.nodeItems(f.node, f.branch, f.run)
		if err != nil {
			return Value{}, false, err
		}
		return s.fastItems(items, f)
	case rootLegacy:
		item, err := s.legacy(f.node, index)
		if err != nil {
			return Value{}, false, err
		}
		v, ok = followItem(item, f.keys)
		return v, ok, nil
	case rootFromAI:
		if v, err = s.fromAI(f.fromAI); err != nil {
			return Value{}, false, err
		}
	case rootItemIndex:
		v = Value{JSON: json.RawMessage(strconv.Itoa(index))}
	case rootRunIndex:
		v = Value{JSON: json.RawMessage(strconv.Itoa(s.RunIndex))}
	case rootWorkflow:
		switch f.keys[0] {
		case "id":
			v = Value{JSON: quote(s.Workflow.ID)}
		case "name":
			v = Value{JSON: quote(s.Workflow.Name)}
		case "active":
			v = Value{JSON: json.RawMessage(strconv.FormatBool(s.Workflow.Active))}
		}
		v, ok = follow(v, f.keys[1:])
		return v, ok, nil
	case rootExecution:
		switch f.keys[0] {
		case "id":
			v = Value{JSON: quote(s.Execution.ID)}
		case "mode":
			v = Value{JSON: quote(s.executionMode())}
		case "resumeUrl":
			v = Value{JSON: quote(s.Execution.ResumeURL)}
		case "resumeFormUrl":
			v = Value{JSON: quote(s.Execution.ResumeFormURL)}
		case "idempotencyKey":
			v = Value{JSON: quote(s.Execution.IdempotencyKey)}
		}
		v, ok = follow(v, f.keys[1:])
		return v, ok, nil
	}
	v, ok = follow(v, f.keys)
	return v, ok, nil
}

// executionMode is n8n's word of two: "test" while a person tries a workflow.
func (s *Scope) executionMode() string {
	if s.Execution.Mode == "manual" {
		return "test"
	}
	return "production"
}

func (s *Scope) fastItems(items workflow.Items, f *fast) (v Value, ok bool, err error) {
	keys := f.keys
	if f.which == "all" {
		if len(keys) == 1 && keys[0] == "length" {
			return Value{JSON: json.RawMessage(strconv.Itoa(len(items)))}, true, nil
		}
		if len(keys) > 0 {
			n, isIndex := arrayIndex(keys[0])
			if !isIndex {
				return Value{}, false, nil
			}
			if n >= len(items) {
				return undefined, true, nil
			}
			v, ok = followItem(items[n], keys[1:])
			return v, ok, nil
		}
		return Value{JSON: marshalItems(items)}, true, nil
	}
	item, found := pick(items, f.which)
	if !found {
		return undefined, true, nil
	}
	v, ok = followItem(item, keys)
	return v, ok, nil
}

// followItem walks keys from an item.
func followItem(item workflow.Item, keys []string) (Value, bool) {
	if len(keys) == 0 {
		return Value{JSON: marshalItem(item)}, true
	}
	switch keys[0] {
	case "json":
		return follow(Value{JSON: orEmpty(item.JSON)}, keys[1:])
	case "binary":
		if item.Binary == nil {
			return undefined, true
		}
		raw, _ := json.Marshal(item.Binary)
		return follow(Value{JSON: raw}, keys[1:])
	}
	return follow(Value{JSON: marshalItem(item)}, keys)
}
