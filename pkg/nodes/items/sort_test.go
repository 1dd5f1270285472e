package items

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestSort(t *testing.T) {
	items := nodestest.Items(`{"n":10,"o":{"s":"b"}}`, `{"n":null,"o":{"s":"B"}}`, `{"n":9,"o":{"s":"a"}}`, `{"o":{}}`)
	by := func(rows, options string) string {
		return `{"sortFieldsUi":{"sortField":[` + rows + `]},"options":{` + options + `}}`
	}
	a, b, c, d := `{"n":10,"o":{"s":"b"}} {"item":0}`, `{"n":null,"o":{"s":"B"}} {"item":1}`, `{"n":9,"o":{"s":"a"}} {"item":2}`, `{"o":{}} {"item":3}`
	try(t, Sort(), items, []trial{
		{name: "numbers, null is 0, missing is last", parameters: by(`{"fieldName":"n"}`, ""), want: one(b, c, a, d)},
		{name: "descending, missing is still last", parameters: by(`{"fieldName":"n","order":"descending"}`, ""), want: one(a, c, b, d)},
		{name: "a path, without regard to case, equal ones stay", parameters: by(`{"fieldName":"o.s"}`, ""), want: one(c, a, b, d)},
		{name: "two fields", parameters: by(`{"fieldName":"o.s"},{"fieldName":"n","order":"ascending"}`, ""), want: one(c, b, a, d)},
		{name: "no dot notation", parameters: by(`{"fieldName":"o.s"}`, `"disableDotNotation":true`), err: "Couldn't find the field 'o.s' in the input data"},
		{name: "no field", parameters: `{}`, err: "No sorting specified. Please add a field to sort by"},
		{name: "an unknown order", parameters: by(`{"fieldName":"n","order":"up"}`, ""), err: "The order 'up' is unknown"},
		{name: "content instead of a name", parameters: by(`{"fieldName":"={{ $json.o }}"}`, ""), err: "The parameter 'fieldName' is an object, but it has to name a field"},
		{name: "an unknown type", parameters: `{"type":"best"}`, err: "The sort type 'best' is unknown"},
		{name: "no items", parameters: by(`{"fieldName":"n"}`, ""), inputs: []workflow.Items{{}}, want: ""},
		{name: "no code yet", parameters: `{"type":"code"}`, want: one(a, b, c, d)},
		{name: "code without return", parameters: `{"type":"code","code":"a.returned"}`, err: "Sort code doesn't return. Please add a 'return' statement to your code"},
	})
}

func TestSortMixedKinds(t *testing.T) {
	items := nodestest.Items(`{"v":"b"}`, `{"v":true}`, `{"v":"10"}`, `{"v":9}`, `{"v":"a"}`, `{}`)
	out := nodestest.Run(t, Sort(), `{"sortFieldsUi":{"sortField":[{"fieldName":"v"}]}}`, items)
	if got, want := render(out), one(`{"v":true} {"item":1}`, `{"v":9} {"item":3}`, `{"v":"10"} {"item":2}`, `{"v":"a"} {"item":4}`, `{"v":"b"} {"item":0}`, `{} {"item":5}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSortAtRandomIsRepeatable(t *testing.T) {
	var objects []string
	for range 20 {
		objects = append(objects, `{}`)
	}
	order := func(key string) string {
		call := nodestest.Call(Sort(), `{"type":"random"}`, nodestest.Items(objects...))
		call.IdempotencyKey = key
		result, err := call.Type.Execute(context.Background(), call)
		if err != nil || len(result.Outputs[0]) != 20 {
			t.Fatalf("got %v, %v", result, err)
		}
		return render(result.Outputs)
	}
	first, again, other := order("one"), order("one"), order("two")
	if first != again || first == other {
		t.Error("the order must follow from the idempotency key")
	}
	if first, again = order(""), order(""); first == again {
		t.Error("without a key the order must differ")
	}
}

// script runs code as the programs do.
func script(t *testing.T) func(context.Context, *node.Call, node.Script) (*node.ScriptResult, error) {
	t.Helper()
	evaluator, err := expression.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = evaluator.Close() })
	return func(ctx context.Context, call *node.Call, s node.Script) (*node.ScriptResult, error) {
		scope := &expression.Scope{Node: call.Node, Inputs: call.Inputs, Sources: call.Source, RunData: call.RunData}
		result, err := evaluator.RunCode(ctx, scope, expression.Code{Source: s.Code, Item: s.Item})
		var failed *expression.Error
		if errors.As(err, &failed) {
			err = &engine.NodeError{Message: failed.Message}
		}
		return &node.ScriptResult{Value: result.JSON, Type: result.Type, Logs: result.Logs}, err
	}
}

func TestSortByCode(t *testing.T) {
	run := script(t)
	for _, test := range []struct{ code, want, err string }{
		{code: `if (a.json.n < b.json.n) { return -1; }\nreturn a.json.n > b.json.n ? 1 : 0; // by n`, want: one(`{"n":1} {"item":1}`, `{"n":2} {"item":2}`, `{"n":3} {"item":0}`)},
		{code: `return b.json.n - a.json.n;`, want: one(`{"n":3} {"item":0}`, `{"n":2} {"item":2}`, `{"n":1} {"item":1}`)},
		{code: `return a.nope.n`, err: "Cannot read properties of undefined"},
		{code: `return (`, err: "Unexpected"},
	} {
		call := nodestest.Call(Sort(), `{"type":"code","code":"`+test.code+`"}`, nodestest.Items(`{"n":3}`, `{"n":1}`, `{"n":2}`))
		call.RunScript = run
		result, err := call.Type.Execute(context.Background(), call)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want an error with %q", test.code, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := render(result.Outputs); got != test.want {
			t.Errorf("%s: got %s, want %s", test.code, got, test.want)
		}
	}
	call := nodestest.Call(Sort(), `{"type":"code","code":"return 0"}`, nodestest.Items(`{}`))
	if _, err := call.Type.Execute(context.Background(), call); err == nil {
		t.Error("a process without scripts must say so")
	}
}
