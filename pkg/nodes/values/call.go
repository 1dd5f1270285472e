package values

import (
	"context"
	"fmt"
	"io"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// oneByOne makes a node that turns each item into one.
func oneByOne(convert func(ctx context.Context, call *node.Call, i int) (workflow.Item, error)) func(context.Context, *node.Call) (*node.Result, error) {
	return func(ctx context.Context, call *node.Call) (*node.Result, error) {
		return call.ByItem(ctx, func(i int) (workflow.Items, error) {
			item, err := convert(ctx, call, i)
			return workflow.Items{item}, err
		})
	}
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
	file, ok := call.Input(0)[i].Binary[name]
	if !ok {
		return nil, node.OperationError(i, fmt.Sprintf("This operation expects the node's input data to contain a binary file %q, but none was found", name),
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
		return nil, node.OperationError(i, fmt.Sprintf("Node does not have any credentials set for %q", kind),
			fmt.Sprintf("Set a credential of type %s on the node.", kind))
	}
	if call.Credentials == nil {
		return nil, node.OperationError(i, "credentials are not available here", "")
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
