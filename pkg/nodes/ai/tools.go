package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Calculator evaluates an arithmetic expression.
func Calculator() *node.Type {
	return textTool("toolCalculator", []float64{1}, func(_ context.Context, _ *node.Call, _ int, input gjson.Result) (string, []string, error) {
		return calculated(input.String()), nil, nil
	}, "Computes the value of a mathematical expression, such as 2 * (3 + 4) or sqrt(2). "+
		"The input is nothing but the expression, in the notation of a pocket calculator.")
}

// cannotCalculate is what n8n's calculator says to what it does not understand.
const cannotCalculate = "I don't know how to do that."

func calculated(expression string) string {
	value, err := calculate(expression)
	if err != nil {
		return cannotCalculate
	}
	return value
}

// ThinkTool gives a model's thought back, so that it stays in the conversation.
func ThinkTool() *node.Type {
	return textTool("toolThink", []float64{1, 1.1}, func(_ context.Context, _ *node.Call, _ int, input gjson.Result) (string, []string, error) {
		return input.String(), nil, nil
	}, "A place to think something through in writing, when that helps. It finds out nothing new and changes nothing; the thought is only kept in the conversation.")
}

// CodeTool runs JavaScript on the model's arguments.
func CodeTool() *node.Type {
	t := textTool("toolCode", []float64{1, 1.1, 1.2, 1.3}, runCode, "Runs code")
	t.Describe = func(ctx context.Context, call *node.Call) (*node.ToolDescription, error) {
		description, err := text(ctx, call, 0, "description", "")
		if err != nil {
			return nil, err
		}
		name := call.Node.Name
		if call.Node.TypeVersion < 1.2 {
			if name, err = text(ctx, call, 0, "name", name); err != nil {
				return nil, err
			}
		}
		schema, err := codeSchema(ctx, call)
		if err != nil {
			return nil, err
		}
		if schema == nil {
			schema = fromai.TextSchema
		}
		return &node.ToolDescription{Name: name, Description: description, Schema: schema}, nil
	}
	return t
}

// textTool is a tool that answers every item (or its arguments as a tool) with
// {"response": text}. run gets the argument "input" of the item.
func textTool(name string, versions []float64, run func(context.Context, *node.Call, int, gjson.Result) (string, []string, error), description string) *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: family + name, Versions: versions, ToolNode: true},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			result := &node.Result{Result: engine.Result{Outputs: []workflow.Items{{}}}}
			if len(call.Inputs) == 0 {
				return result, nil
			}
			for i, item := range call.Inputs[0] {
				arguments := gjson.ParseBytes(item.JSON)
				if call.ToolArguments != nil {
					arguments = gjson.ParseBytes(call.ToolArguments)
				}
				answer, logs, err := run(ctx, call, i, arguments.Get("input"))
				result.Logs = append(result.Logs, logs...)
				out := workflow.Item{PairedItem: workflow.Paired(i)}
				var failure *engine.NodeError
				switch failed := errors.As(err, &failure); {
				case err == nil:
					out.JSON = json.RawMessage(`{"response":` + jsonobject.Quote(answer) + `}`)
				case ctx.Err() != nil:
					return nil, ctx.Err()
				case failed && call.ToolArguments == nil && call.Node.Continues():
					out.JSON = json.RawMessage(`{"error":` + jsonobject.Quote(failure.Message) + `}`)
				case failed:
					return &node.Result{Result: engine.Result{Error: failure, Logs: result.Logs}}, nil
				default:
					return nil, err
				}
				result.Outputs[0] = append(result.Outputs[0], out)
			}
			return result, nil
		},
		Describe: func(ctx context.Context, call *node.Call) (*node.ToolDescription, error) {
			said, err := text(ctx, call, 0, "description", description)
			if err != nil {
				return nil, err
			}
			return &node.ToolDescription{Name: call.Node.Name, Description: said, Schema: fromai.TextSchema}, nil
		},
	}
}

// codeSchema is the schema of a code tool's arguments, nil when it takes one
// text.
func codeSchema(ctx context.Context, call *node.Call) (json.RawMessage, error) {
	own, err := flag(ctx, call, 0, "specifyInputSchema", false)
	if err != nil || !own {
		return nil, err
	}
	kind, err := text(ctx, call, 0, "schemaType", "fromJson")
	if err != nil {
		return nil, err
	}
	path := "jsonSchemaExample"
	if kind == "manual" {
		path = "inputSchema"
	}
	value, err := param(ctx, call, 0, path)
	if err != nil {
		return nil, err
	}
	source := json.RawMessage(value.String())
	if !json.Valid(source) {
		return nil, operationError("The parameter "+path+" of "+call.Node.Name+" is not valid JSON", "")
	}
	if kind != "manual" {
		source = json.RawMessage(jsonobject.SchemaOfExample(string(source), call.Node.TypeVersion >= 1.3, true))
	}
	if _, err := schemas.get(source); err != nil {
		return nil, operationError("The input schema of "+call.Node.Name+" is not a JSON schema", err.Error())
	}
	return plainJSON(source), nil
}

func runCode(ctx context.Context, call *node.Call, item int, input gjson.Result) (string, []string, error) {
	if language := gjson.GetBytes(call.Node.Parameters, "language").Str; strings.HasPrefix(strings.ToLower(language), "python") {
		return "", nil, &engine.NodeError{
			Name: "NodeOperationError", Message: "Code tools in Python are not supported",
			Description: "Rewrite the code in JavaScript.", NotRetryable: true,
		}
	}
	if call.RunScript == nil {
		return "", nil, operationError("This process runs no scripts", "")
	}
	query := json.RawMessage(input.Raw)
	schema, err := codeSchema(ctx, call)
	switch {
	case err != nil:
		return "", nil, err
	case schema != nil && call.ToolArguments != nil:
		query = call.ToolArguments
	case schema != nil:
		query = call.Inputs[0][item].JSON
	case !input.Exists():
		// Run without an Agent, the text may also come under the name it has in the code.
		query = json.RawMessage(gjson.GetBytes(call.Inputs[0][item].JSON, "query").Raw)
	}
	globals := map[string]json.RawMessage{}
	if len(query) > 0 {
		globals["query"] = query
	} else {
		globals["query"] = json.RawMessage(`""`)
	}
	code := gjson.GetBytes(call.Node.Parameters, "jsCode").String()
	script, err := call.RunScript(ctx, call, node.Script{Code: code, Item: item, Globals: globals})
	var logs []string
	if script != nil {
		logs = script.Logs
	}
	if err != nil {
		return "", logs, err
	}
	value := gjson.ParseBytes(script.Value)
	switch script.Type {
	case "string":
		return value.String(), logs, nil
	case "number":
		return value.Raw, logs, nil
	}
	kind := script.Type
	if kind == "array" || kind == "null" {
		kind = "object"
	}
	return "", logs, operationError("Wrong output type returned", fmt.Sprintf("The response property should be a string, but it is an %s", kind))
}
