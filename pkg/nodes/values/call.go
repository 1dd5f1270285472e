package values

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// operationError is n8n's error of a node's own code.
func operationError(item int, message, description string) *engine.NodeError {
	return &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description, ItemIndex: &item}
}

// unknown is the failure of a parameter with a value that the node does not know.
func unknown(item int, path, value string, known ...string) error {
	return operationError(item, fmt.Sprintf("%q is not supported", value),
		fmt.Sprintf("parameter %s: choose one of %s", path, strings.Join(known, ", ")))
}

// oneByOne makes a node that turns each item into one. An item that fails becomes
// {"error": …} when the node continues on errors.
func oneByOne(make func(ctx context.Context, call *node.Call, i int) (workflow.Item, error)) func(context.Context, *node.Call) (*node.Result, error) {
	return func(ctx context.Context, call *node.Call) (*node.Result, error) {
		out := workflow.Items{}
		for i := range input(call) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			item, err := make(ctx, call, i)
			if err != nil {
				if !survivable(ctx, call, err) {
					return nil, err
				}
				item = workflow.Item{JSON: json.RawMessage(`{"error":` + jsonobject.Quote(err.Error()) + `}`)}
			}
			item.PairedItem = workflow.Paired(i)
			out = append(out, item)
		}
		return &node.Result{Result: engine.Result{Outputs: []workflow.Items{out}}}, nil
	}
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

// withField is an item with one field more, or with another value in it. The name is
// taken as it is: in these nodes n8n makes no path of its dots.
func withField(item workflow.Item, name, value string) workflow.Item {
	object := jsonobject.Parse(item.JSON)
	object.Set(name, value)
	return workflow.Item{JSON: object.JSON(), Binary: item.Binary}
}

// openFile opens the file that an item carries under a name; the caller closes it.
func openFile(ctx context.Context, call *node.Call, i int, name string) (io.ReadCloser, error) {
	file, ok := input(call)[i].Binary[name]
	if !ok {
		return nil, operationError(i, fmt.Sprintf("This operation expects the node's input data to contain a binary file %q, but none was found", name),
			"Check that the node before puts out a file under this name.")
	}
	r, err := call.Files.Open(ctx, file)
	if err != nil {
		return nil, node.ParameterError(err, i, name)
	}
	return r, nil
}

// secrets are the fields of a credential.
type secrets struct {
	name string
	data map[string]any
}

// credential reads the node's credential of a kind.
func credential(ctx context.Context, call *node.Call, i int, kind string) (*secrets, error) {
	ref, ok := call.Node.Credentials[kind]
	if !ok {
		return nil, operationError(i, fmt.Sprintf("Node does not have any credentials set for %q", kind),
			fmt.Sprintf("Set a credential of type %s on the node.", kind))
	}
	if call.Credentials == nil {
		return nil, operationError(i, "credentials are not available here", "")
	}
	data, err := call.Credentials(ctx, kind, ref)
	if err != nil {
		return nil, fmt.Errorf("credential %q of type %s: %w", ref.Name, kind, err)
	}
	return &secrets{fmt.Sprintf("%q (%s)", ref.Name, kind), data}, nil
}

// text is the first of the fields that is set.
func (s *secrets) text(fields ...string) string {
	for _, field := range fields {
		if v, ok := s.data[field]; ok && v != nil {
			if text := fmt.Sprint(v); text != "" {
				return text
			}
		}
	}
	return ""
}
