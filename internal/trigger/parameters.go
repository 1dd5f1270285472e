package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Evaluator evaluates the expressions of a trigger's own parameters, such as the text it
// answers with.
type Evaluator interface {
	Resolve(ctx context.Context, s *expression.Scope, item int, raw json.RawMessage) (json.RawMessage, error)
}

// parameters reads those of a trigger node. The first error stays in err, and every later
// value is its fallback.
type parameters struct {
	ctx       context.Context //nolint:containedctx // it lives as long as one call's parameters are read
	node      *workflow.Node
	evaluator Evaluator
	scope     *expression.Scope
	err       error
}

// parametersOf reads parameters for the items that a call gave; nil items are none yet.
func parametersOf(ctx context.Context, e Evaluator, w *workflow.Workflow, n *workflow.Node, items workflow.Items) *parameters {
	scope := &expression.Scope{Node: n, Inputs: []workflow.Items{items}, Timezone: w.Settings.Timezone, Now: time.Now()}
	scope.Workflow.ID, scope.Workflow.Name, scope.Workflow.Active = w.ID, w.Name, true
	scope.Execution.Mode = "webhook"
	return &parameters{ctx: ctx, node: n, evaluator: e, scope: scope}
}

// get returns the parameter at a dotted path with its expressions evaluated.
func (p *parameters) get(path string) gjson.Result {
	found := gjson.GetBytes(p.node.Parameters, path)
	if !found.Exists() || p.err != nil || !strings.Contains(found.Raw, `"=`) {
		return found
	}
	if p.evaluator == nil {
		p.err = fmt.Errorf("parameter %s of node %q: expressions cannot be used here", path, p.node.Name)
		return gjson.Result{}
	}
	value, err := p.evaluator.Resolve(p.ctx, p.scope, 0, json.RawMessage(found.Raw))
	if err != nil {
		p.err = fmt.Errorf("parameter %s of node %q: %w", path, p.node.Name, err)
		return gjson.Result{}
	}
	return gjson.ParseBytes(value)
}

func (p *parameters) text(path, fallback string) string {
	v := p.get(path)
	if !v.Exists() || v.Type == gjson.Null {
		return fallback
	}
	return v.String()
}

func (p *parameters) flag(path string) bool {
	return p.get(path).Bool()
}

func (p *parameters) number(path string, fallback int) int {
	v := p.get(path)
	if !v.Exists() || v.Type == gjson.Null || v.String() == "" {
		return fallback
	}
	n, err := strconv.ParseFloat(v.String(), 64)
	if err != nil {
		if p.err == nil {
			p.err = fmt.Errorf("parameter %s of node %q: %q is no number", path, p.node.Name, v.String())
		}
		return fallback
	}
	return int(n)
}
