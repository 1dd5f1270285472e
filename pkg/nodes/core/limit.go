package core

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Limit keeps the first or the last items.
func Limit() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "limit", Versions: []float64{1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			count, err := call.Int(ctx, 0, "maxItems", 1)
			if err != nil {
				return nil, err
			}
			keep, err := choice(ctx, call, 0, "keep", "firstItems")
			if err != nil {
				return nil, err
			}
			result := passAll(call.Input(0))
			items := result.Outputs[0]
			switch count = max(count, 0); {
			case count >= len(items):
			case keep == "lastItems":
				result.Outputs[0] = items[len(items)-count:]
			default:
				result.Outputs[0] = items[:count]
			}
			return result, nil
		},
	}
}

// StopAndError ends the execution with an error of the author's choice.
func StopAndError() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "stopAndError", Versions: []float64{1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			kind, err := choice(ctx, call, 0, "errorType", "errorMessage")
			if err != nil {
				return nil, err
			}
			failure := &engine.NodeError{Name: "NodeOperationError", NotRetryable: true}
			if kind != "errorObject" {
				failure.Message, err = choice(ctx, call, 0, "errorMessage", "")
				if err != nil {
					return nil, err
				}
				return nil, failure
			}
			object, err := resolve(ctx, call, 0, parameter(call, "errorObject"), "errorObject")
			if err != nil {
				return nil, err
			}
			if object.Type == gjson.String && gjson.Valid(object.Str) {
				object = gjson.Parse(object.Str)
			}
			failure.Message = "Error: " + compact(object.Raw)
			for _, key := range []string{"error", "description", "message"} {
				if text := object.Get(key); text.Type == gjson.String && text.Str != "" {
					failure.Message = text.Str
				}
			}
			failure.Description = object.Get("description").String()
			return nil, failure
		},
	}
}
