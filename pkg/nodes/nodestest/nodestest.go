// Package nodestest runs a node type in a unit test, without an engine and
// without JavaScript.
package nodestest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Call returns a call of a node type with the given parameters and inputs, the
// items stamped with their index. Tests change it as they need.
func Call(t *node.Type, parameters string, inputs ...workflow.Items) *node.Call {
	call := &node.Call{
		Node: &workflow.Node{
			Name: "Node", Type: t.Type, TypeVersion: t.Versions[len(t.Versions)-1],
			Parameters: json.RawMessage(parameters),
		},
		Attempt: 1,
		RunData: RunData{},
		Type:    t,
		Services: node.Services{
			Log:        zap.NewNop(),
			Now:        time.Now,
			Parameters: Resolver{},
		},
	}
	for n, items := range inputs {
		var stamped workflow.Items
		for i, item := range items {
			item.PairedItem = workflow.PairedItems{{Item: i, Input: n}}
			stamped = append(stamped, item)
		}
		call.Inputs = append(call.Inputs, stamped)
		call.Source = append(call.Source, &workflow.Source{PreviousNode: "Before"})
	}
	return call
}

// Run runs the latest version of a node type and returns its outputs; an
// error ends the test.
func Run(tb testing.TB, t *node.Type, parameters string, inputs ...workflow.Items) []workflow.Items {
	tb.Helper()
	result, err := t.Execute(context.Background(), Call(t, parameters, inputs...))
	if err != nil {
		tb.Fatalf("%s with %s: %v", t.Type, parameters, err)
	}
	if result.Error != nil {
		tb.Fatalf("%s with %s: %v", t.Type, parameters, result.Error)
	}
	return result.Outputs
}

// Items makes items of JSON objects.
func Items(objects ...string) workflow.Items {
	items := workflow.Items{}
	for _, object := range objects {
		items = append(items, workflow.Item{JSON: json.RawMessage(object)})
	}
	return items
}

// Resolver evaluates {{ $json.path }}, alone or within text, and what its Values
// list: results by item, under the whole text of the parameter.
type Resolver struct {
	Values map[string][]json.RawMessage
}

// Resolve implements node.ParameterResolver.
func (r Resolver) Resolve(ctx context.Context, call *node.Call, item int, raw json.RawMessage) (json.RawMessage, error) {
	value := gjson.ParseBytes(raw)
	switch {
	case value.IsObject() || value.IsArray():
		return r.tree(ctx, call, item, value)
	case value.Type != gjson.String || !strings.HasPrefix(value.Str, "="):
		return raw, nil
	}
	if results, ok := r.Values[value.Str]; ok {
		if item >= len(results) {
			return nil, fmt.Errorf("no value of %q for item %d", value.Str, item)
		}
		return results[item], nil
	}
	text := value.Str[1:]
	lookUp := func(code string) (gjson.Result, error) {
		path, ok := strings.CutPrefix(strings.TrimSpace(code), "$json.")
		if !ok {
			return gjson.Result{}, fmt.Errorf("nodestest cannot evaluate %q", code)
		}
		return gjson.GetBytes(call.Inputs[0][item].JSON, path), nil
	}
	if strings.HasPrefix(text, "{{") && strings.Index(text, "}}") == len(text)-2 {
		found, err := lookUp(text[2 : len(text)-2])
		if err != nil || !found.Exists() {
			return nil, err
		}
		return json.RawMessage(found.Raw), nil
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{{")
		b.WriteString(before)
		if !ok {
			return json.Marshal(b.String())
		}
		code, after, _ := strings.Cut(rest, "}}")
		found, err := lookUp(code)
		if err != nil {
			return nil, err
		}
		b.WriteString(found.String())
		text = after
	}
}

func (r Resolver) tree(ctx context.Context, call *node.Call, item int, tree gjson.Result) (json.RawMessage, error) {
	var parts []string
	var failure error
	tree.ForEach(func(key, value gjson.Result) bool {
		resolved, err := r.Resolve(ctx, call, item, json.RawMessage(value.Raw))
		switch {
		case err != nil:
			failure = err
		case tree.IsArray() && resolved == nil:
			parts = append(parts, "null")
		case tree.IsArray():
			parts = append(parts, string(resolved))
		case resolved != nil:
			parts = append(parts, key.Raw+":"+string(resolved))
		}
		return failure == nil
	})
	if tree.IsArray() {
		return json.RawMessage("[" + strings.Join(parts, ",") + "]"), failure
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}"), failure
}

// Record is one run of a node in a RunData.
type Record struct {
	Source []*workflow.Source `json:"source"`
	Main   []workflow.Items   `json:"main"`
}

// RunData are the runs of nodes by name.
type RunData map[string][]Record

var _ node.RunData = RunData{}

// Runs implements node.RunData.
func (d RunData) Runs(name string) int { return len(d[name]) }

// Items implements node.RunData.
func (d RunData) Items(name string, run, output int) (workflow.Items, bool) {
	if run < 0 || run >= len(d[name]) || output >= len(d[name][run].Main) {
		return nil, false
	}
	return d[name][run].Main[output], true
}

// Sources implements node.RunData.
func (d RunData) Sources(name string, run int) []*workflow.Source {
	if run < 0 || run >= len(d[name]) {
		return nil
	}
	return d[name][run].Source
}
