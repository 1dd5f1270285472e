package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// OperationError is n8n's error of a node's own code; item -1 names no item.
func OperationError(item int, message, description string) *engine.NodeError {
	failure := &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description}
	if item >= 0 {
		failure.ItemIndex = &item
	}
	return failure
}

// Unknown is the failure of a parameter with a value that the node does not know.
func Unknown(item int, path, value string, known ...string) *engine.NodeError {
	return OperationError(item, fmt.Sprintf("%q is not supported", value),
		fmt.Sprintf("parameter %s: choose one of %s", path, strings.Join(known, ", ")))
}

// Survives reports whether a node that continues on errors may turn err into data. The end of
// the attempt is none of its business, and a tool's failure belongs to the engine, which tells
// the model.
func (c *Call) Survives(ctx context.Context, err error) bool {
	var failure *engine.NodeError
	return c.Node.Continues() && c.ToolCallID == "" && c.ToolArguments == nil && ctx.Err() == nil && errors.As(err, &failure)
}

// ErrorItem is what stands for an item that failed: {"error": message}.
func ErrorItem(message string, paired workflow.PairedItems) workflow.Item {
	text, err := workflow.Encode(message, workflow.CheckRaw)
	if err != nil {
		text = []byte(`""`) // a text can always be encoded
	}
	return workflow.Item{JSON: json.RawMessage(`{"error":` + string(text) + `}`), PairedItem: paired}
}
