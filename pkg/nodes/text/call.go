package text

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// maxFileBytes bounds the files that are taken apart in memory.
const maxFileBytes = 32 << 20

// operationError is n8n's error of a node's own code.
func operationError(item int, message, description string) *engine.NodeError {
	return &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description, ItemIndex: &item}
}

// unknown is the failure of a parameter with a value that the node does not know.
func unknown(item int, path, value string, known ...string) error {
	return operationError(item, fmt.Sprintf("%q is not supported", value),
		fmt.Sprintf("parameter %s: choose one of %s", path, strings.Join(known, ", ")))
}

// byItem makes the output of what make makes of each item. An item that fails becomes
// {"error": …} when the node continues on errors.
func byItem(ctx context.Context, call *node.Call, make func(i int) (workflow.Items, error)) (*node.Result, error) {
	out := workflow.Items{}
	for i := range input(call) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, err := make(i)
		if err != nil {
			if !survivable(ctx, call, err) {
				return nil, err
			}
			made = workflow.Items{{JSON: json.RawMessage(`{"error":` + jsonobject.Quote(err.Error()) + `}`)}}
		}
		for _, item := range made {
			item.PairedItem = workflow.Paired(i)
			out = append(out, item)
		}
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{out}}}, nil
}

// survivable reports whether a node that continues may turn err into data. The end of
// the attempt is none of its business, and a tool's failure belongs to the engine, which
// tells the model.
func survivable(ctx context.Context, call *node.Call, err error) bool {
	n := call.Node
	continues := n.ContinueOnFail || n.OnError == workflow.OnErrorContinue || n.OnError == workflow.OnErrorOutput
	var failure *engine.NodeError
	return continues && call.ToolCallID == "" && call.ToolArguments == nil && ctx.Err() == nil && errors.As(err, &failure)
}

func input(call *node.Call) workflow.Items {
	if len(call.Inputs) == 0 {
		return nil
	}
	return call.Inputs[0]
}

// fileText reads the file that an item carries under a name as UTF-8.
func fileText(ctx context.Context, call *node.Call, i int, name string) (string, error) {
	file, ok := input(call)[i].Binary[name]
	if !ok {
		return "", operationError(i, fmt.Sprintf("No property named %q exists!", name), "The item has no file of this name.")
	}
	data, err := call.Files.Read(ctx, file, maxFileBytes)
	if err != nil {
		return "", node.ParameterError(err, i, name)
	}
	return string(bytes.TrimPrefix(data, []byte("\ufeff"))), nil
}

// asText is a value as JavaScript puts it into a text; trees become JSON.
func asText(value gjson.Result) string {
	if value.IsObject() || value.IsArray() {
		var b bytes.Buffer
		if json.Compact(&b, []byte(value.Raw)) == nil {
			return b.String()
		}
	}
	return value.String()
}
