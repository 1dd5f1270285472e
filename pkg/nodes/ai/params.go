package ai

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const family = "@n8n/n8n-nodes-langchain."

// attached is a sub-node's call as the node that uses it sees it: the
// sub-node's expressions refer to the user's inputs.
func attached(user, sub *node.Call) *node.Call {
	joined := *sub
	joined.Inputs, joined.Source, joined.RunIndex = user.Inputs, user.Source, user.RunIndex
	joined.ToolArguments, joined.ToolCallID = user.ToolArguments, user.ToolCallID
	joined.Execution, joined.Workflow = user.Execution, user.Workflow
	joined.IdempotencyKey = user.IdempotencyKey
	if user.RunData != nil {
		joined.RunData = user.RunData
	}
	joined.Services = user.Services
	return &joined
}

// constant reports whether no parameter of the node is an expression.
func constant(call *node.Call) bool { return !bytes.Contains(call.Node.Parameters, []byte(`"=`)) }

// param returns a parameter for an item; it does not exist when it is absent,
// undefined or null.
func param(ctx context.Context, call *node.Call, item int, path string) (gjson.Result, error) {
	raw := gjson.GetBytes(call.Node.Parameters, path)
	if raw.Type == gjson.Null {
		return gjson.Result{}, nil
	}
	if raw.Type != gjson.JSON && (raw.Type != gjson.String || len(raw.Str) == 0 || raw.Str[0] != '=') {
		return raw, nil
	}
	if raw.Type == gjson.JSON && !bytes.Contains([]byte(raw.Raw), []byte(`"=`)) {
		return raw, nil
	}
	value, err := call.Parameters.Resolve(ctx, call, item, json.RawMessage(raw.Raw))
	if err != nil {
		return gjson.Result{}, node.ParameterError(err, item, path)
	}
	if parsed := gjson.ParseBytes(value); parsed.Type != gjson.Null {
		return parsed, nil
	}
	return gjson.Result{}, nil
}

// text returns a parameter as text; what is no text is rendered as JSON.
func text(ctx context.Context, call *node.Call, item int, path, fallback string) (string, error) {
	value, err := param(ctx, call, item, path)
	if err != nil || !value.Exists() {
		return fallback, err
	}
	return value.String(), nil
}

func flag(ctx context.Context, call *node.Call, item int, path string, fallback bool) (bool, error) {
	value, err := param(ctx, call, item, path)
	if err != nil || !value.Exists() {
		return fallback, err
	}
	return value.Bool(), nil
}

// number returns a number parameter and whether there is one.
func number(ctx context.Context, call *node.Call, item int, path string) (float64, bool, error) {
	value, err := param(ctx, call, item, path)
	if err != nil || !value.Exists() || value.String() == "" {
		return 0, false, err
	}
	if value.Type == gjson.Number {
		return value.Num, true, nil
	}
	n, err := strconv.ParseFloat(value.String(), 64)
	if err != nil {
		return 0, false, &engine.NodeError{
			Name: "NodeOperationError", Message: strconv.Quote(value.String()) + " is no number",
			Description: "parameter " + path, ItemIndex: &item,
		}
	}
	return n, true, nil
}

// operationError is n8n's error of a node's own code.
func operationError(message, description string) *engine.NodeError {
	return &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description}
}

// subNode is the type of a node that only serves others.
func subNode(name string, versions ...float64) *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: family + name, Versions: versions, SubNode: true},
		Execute: func(_ context.Context, call *node.Call) (*node.Result, error) {
			return nil, operationError(strconv.Quote(call.Node.Name)+" cannot run by itself", "Connect it to a node that uses it, such as an AI Agent.")
		},
	}
}
