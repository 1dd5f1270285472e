package core

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

// evaluating resolves parameters as the programs do.
type evaluating struct {
	evaluator *expression.Evaluator
	scope     expression.Scope
}

func (r *evaluating) Resolve(ctx context.Context, call *node.Call, item int, raw json.RawMessage) (json.RawMessage, error) {
	scope := r.scope
	scope.Node = call.Node
	return r.evaluator.Resolve(ctx, &scope, item, raw)
}

// manyItems is a call on ten thousand items.
func manyItems(b *testing.B, nodeType *node.Type, parameters string) *node.Call {
	objects := make([]string, 10_000)
	for i := range objects {
		objects[i] = `{"n":` + formatNumber(float64(i)) + `,"s":"text","more":[1,2,3]}`
	}
	call := nodestest.Call(nodeType, parameters, nodestest.Items(objects...))
	evaluator, err := expression.New()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = evaluator.Close() })
	call.Parameters = &evaluating{evaluator, expression.Scope{Inputs: call.Inputs, Sources: call.Source, RunData: call.RunData, Now: time.Now()}}
	return call
}

func benchmark(b *testing.B, call *node.Call) {
	if _, err := call.Type.Execute(context.Background(), call); err != nil { // starts what is started once
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := call.Type.Execute(context.Background(), call); err != nil {
			b.Fatal(err)
		}
	}
}

// Set with three fields on ten thousand items should take less than 0.3 s.
func BenchmarkSetManyItems(b *testing.B) {
	benchmark(b, manyItems(b, Set(), `{"assignments":{"assignments":[`+
		`{"id":"a","name":"question","value":"shout hi and compute 6 * 7","type":"string"},`+
		`{"id":"b","name":"n","value":"={{ $json.n }}","type":"number"},`+
		`{"id":"c","name":"o.s","value":"={{ $json.s }}","type":"string"}]},"includeOtherFields":true,"options":{}}`))
}

// The same when a field needs JavaScript.
func BenchmarkSetManyItemsScript(b *testing.B) {
	benchmark(b, manyItems(b, Set(), `{"assignments":{"assignments":[`+
		`{"id":"b","name":"n","value":"={{ $json.n * 2 }}","type":"number"}]},"includeOtherFields":true,"options":{}}`))
}

func BenchmarkSwitchManyItems(b *testing.B) {
	benchmark(b, manyItems(b, Switch(), `{"rules":{"values":[`+rule("gt", "5000")+`,`+rule("gt", "2000")+`]},"options":{}}`))
}
