package flow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestDescribeTool(t *testing.T) {
	const text = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`
	for name, row := range map[string]struct {
		version            float64
		parameters         string
		name, desc, schema string
		message            string
	}{
		"1":                      {version: 1, parameters: `{"name":"doubler","description":"Doubles"}`, name: "doubler", desc: "Doubles", schema: text},
		"1.3 without a name":     {version: 1.3, parameters: `{}`, name: "Node", schema: text},
		"2.1":                    {version: 2.1, parameters: `{"name":"doubler"}`, name: "doubler", schema: text},
		"2.2":                    {version: 2.2, parameters: `{"name":"doubler","description":"=D"}`, name: "Node", desc: "D", schema: text},
		"schema of 1 is not 2's": {version: 2, parameters: `{"specifyInputSchema":true,"jsonSchemaExample":"{oops"}`, name: "Node", schema: text},
		"schema is off":          {version: 1.2, parameters: `{"specifyInputSchema":false,"jsonSchemaExample":"{oops"}`, name: "Node", schema: text},
		"example": {version: 1.1, parameters: `{"specifyInputSchema":true,"jsonSchemaExample":"{\"a\":1,\"l\":[{\"s\":\"\"}],\"b\":true,\"z\":null}"}`, name: "Node",
			schema: `{"type":"object","properties":{"a":{"type":"number"},"l":{"type":"array","items":{"type":"object","properties":{"s":{"type":"string"}},"additionalProperties":false}},"b":{"type":"boolean"},"z":{}},"additionalProperties":false}`},
		"example of 1.3": {version: 1.3, parameters: `{"specifyInputSchema":true,"schemaType":"fromJson","jsonSchemaExample":"{\"a\":[]}"}`, name: "Node",
			schema: `{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`},
		"manual":      {version: 1.2, parameters: `{"specifyInputSchema":true,"schemaType":"manual","inputSchema":"{\"type\":\"object\",\"properties\":{\"q\":{\"enum\":[1]}}}"}`, name: "Node", schema: `{"type":"object","properties":{"q":{"enum":[1]}}}`},
		"bad example": {version: 1.2, parameters: `{"specifyInputSchema":true,"jsonSchemaExample":"{oops"}`, message: "The parameter jsonSchemaExample of Node is not valid JSON"},
		"list":        {version: 1.2, parameters: `{"specifyInputSchema":true,"schemaType":"manual","inputSchema":"[]"}`, message: "The parameter inputSchema of Node is not an object"},
		"inputs": {version: 2.2, parameters: `{"description":"ignored {{ $fromAI('x') }}","workflowInputs":{"value":{"n":"={{ $fromAI('number', 'the number', 'number') }}","fixed":3}}}`, name: "Node", desc: "ignored {{ $fromAI('x') }}",
			schema: `{"type":"object","properties":{"number":{"type":"number","description":"the number"}},"required":["number"],"additionalProperties":false}`},
		"bad inputs": {version: 2, parameters: `{"workflowInputs":{"value":{"n":"={{ $fromAI('') }}"}}}`, message: "The workflow inputs of Node are not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			c := call(WorkflowTool(), row.version, row.parameters)
			c.Inputs = nil
			face, err := WorkflowTool().Describe(t.Context(), c)
			if row.message != "" {
				var failure *engine.NodeError
				require.ErrorAs(t, err, &failure)
				require.Equal(t, row.message, failure.Message)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.name, face.Name)
			require.Equal(t, row.desc, face.Description)
			require.JSONEq(t, row.schema, string(face.Schema))
		})
	}
}

func TestToolInput(t *testing.T) {
	const fields = `"fields":{"values":[{"name":"s","stringValue":"={{ $json.chat }}"},{"name":"n","type":"numberValue","numberValue":"5"},{"name":"query","type":"stringValue","stringValue":"mine"},{"name":"o","type":"objectValue","objectValue":"{\"a\":1}"}]}`
	schema := `"schema":[{"id":"n","type":"number"},{"id":"fixed","type":"string"},{"id":"query","type":"string"}],`
	fromAI := nodestest.Resolver{Values: map[string][]json.RawMessage{`={{ $fromAI('n') }}`: {json.RawMessage(`4`)}}}
	for name, row := range map[string]struct {
		version                     float64
		parameters, arguments, want string
		message                     string
	}{
		"1, text":             {version: 1, parameters: `{}`, arguments: `{"input":"hi"}`, want: `{"query":"hi"}`},
		"1, fields":           {version: 1.1, parameters: `{` + fields + `}`, arguments: `{"input":"hi"}`, want: `{"query":"mine","s":"c1","n":5,"o":{"a":1}}`},
		"1, schema":           {version: 1.3, parameters: `{"specifyInputSchema":true}`, arguments: `{"input":"hi","b":[1]}`, want: `{"query":{"input":"hi","b":[1]}}`},
		"1, other arguments":  {version: 1.2, parameters: `{}`, arguments: `{"query":"hi"}`, want: `{"query":"hi"}`},
		"2, text":             {version: 2, parameters: `{}`, arguments: `{"input":"hi"}`, want: `{"query":"hi"}`},
		"2, arguments":        {version: 2.2, parameters: `{"workflowInputs":{"value":{},"schema":[]}}`, arguments: `{"b":1,"a":2}`, want: `{"b":1,"a":2}`},
		"2, mapped":           {version: 2.2, parameters: `{"workflowInputs":{` + schema + `"value":{"n":"={{ $fromAI('n') }}","fixed":"={{ $json.chat }}"}}}`, arguments: `{"n":4}`, want: `{"n":4,"fixed":"c1","query":null}`},
		"2, mapped with text": {version: 2.2, parameters: `{"workflowInputs":{` + schema + `"value":{"fixed":"x"}}}`, arguments: `{"input":"hi"}`, want: `{"n":null,"fixed":"x","query":"hi"}`},
		"2, bad type":         {version: 2.2, parameters: `{"workflowInputs":{` + schema + `"value":{"n":"four"}}}`, arguments: `{}`, message: `'n' expects a number but we got 'four' [item 0]`},
		"1, bad field":        {version: 1, parameters: `{"fields":{"values":[{"name":"n","type":"numberValue","numberValue":"x"}]}}`, arguments: `{}`, message: `'n' expects a number but we got 'x' [item 0]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := call(WorkflowTool(), row.version, `{"workflowId":"child",`+row.parameters[1:], `{"chat":"c1","toolCallId":"call_1"}`)
			if row.parameters == `{}` {
				c.Node.Parameters = json.RawMessage(`{"workflowId":"child"}`)
			}
			c.Parameters = fromAI
			c.ToolArguments, c.ToolCallID = json.RawMessage(row.arguments), "call_1"
			if row.message != "" {
				result, err := WorkflowTool().Execute(t.Context(), c)
				require.Equal(t, row.message, failureOf(t, result, err).Message)
				return
			}
			children := started(t, WorkflowTool(), c)
			require.Len(t, children.Runs, 1)
			require.Equal(t, "child", children.Runs[0].WorkflowID)
			require.Equal(t, row.want, string(children.Runs[0].Input[0].JSON))
		})
	}
	c := call(WorkflowTool(), 2.2, `{"source":"localFile","workflowPath":"/etc/passwd"}`, `{}`)
	result, err := WorkflowTool().Execute(t.Context(), c)
	require.Equal(t, `The workflow source "localFile" is unknown`, failureOf(t, result, err).Message)
	c = call(WorkflowTool(), 2.2, `{"source":"parameter","workflowJson":"{\"nodes\":[]}"}`, `{}`)
	require.JSONEq(t, `{"nodes":[]}`, string(started(t, WorkflowTool(), c).Runs[0].Workflow))
}

func TestToolOutput(t *testing.T) {
	for name, row := range map[string]struct {
		version    float64
		parameters string
		objects    []string
		want       string
	}{
		"1, response":        {version: 1, parameters: `{}`, objects: []string{`{"x":1,"response":"hi"}`, `{}`}, want: `[{"json":{"response":"hi"},"pairedItem":{"item":0}}]`},
		"1.2, a number":      {version: 1.2, parameters: `{"responsePropertyName":"n"}`, objects: []string{`{"n":5}`}, want: `[{"json":{"response":5},"pairedItem":{"item":0}}]`},
		"1.1, an object":     {version: 1.1, parameters: `{"responsePropertyName":"a.b"}`, objects: []string{`{"a":{"b":{"c":1}}}`}, want: `[{"json":{"c":1},"pairedItem":{"item":0}}]`},
		"1.1, field is none": {version: 1.1, parameters: `{}`, objects: []string{`{"a":1}`}, want: `[{"json":{"a":1},"pairedItem":{"item":0}}]`},
		"1.3":                {version: 1.3, parameters: `{"responsePropertyName":"n"}`, objects: []string{`{"n":5}`, `{}`}, want: `[{"json":{"n":5},"pairedItem":{"item":0}}]`},
		"2":                  {version: 2, parameters: `{}`, objects: []string{`{"n":5}`, `{"n":6}`}, want: `[{"json":{"n":5},"pairedItem":{"item":0}}]`},
		"2.1":                {version: 2.1, parameters: `{}`, objects: []string{`{"n":5}`, `{"n":6}`}, want: `[{"json":{"n":5},"pairedItem":{"item":0}},{"json":{"n":6},"pairedItem":{"item":0}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := call(WorkflowTool(), row.version, row.parameters, `{}`)
			c.ToolArguments, c.ToolCallID = json.RawMessage(`{}`), "call_1"
			result, err := resumed(t, WorkflowTool(), c, succeeded("c", row.objects...))
			require.NoError(t, err)
			requireItems(t, row.want, result.Outputs[0])
		})
	}
	c := call(WorkflowTool(), 2.2, `{}`, `{}`)
	c.ToolArguments, c.ToolCallID, c.Node.OnError = json.RawMessage(`{}`), "call_1", workflow.OnErrorContinue
	result, err := resumed(t, WorkflowTool(), c, succeeded("c"))
	require.Equal(t, `There was an error: "The workflow did not return a response"`, failureOf(t, result, err).Message)
	result, err = resumed(t, WorkflowTool(), c, &engine.ChildResult{Status: engine.StatusError, Error: &engine.NodeError{Message: "sub failed"}})
	require.Equal(t, "sub failed", failureOf(t, result, err).Message)
}

// TestToolAsNode runs the tool without an Agent: the items are the arguments.
func TestToolAsNode(t *testing.T) {
	c := call(WorkflowTool(), 2.2, `{"workflowId":"child"}`, `{"input":"a"}`, `{"input":"b"}`)
	children := started(t, WorkflowTool(), c)
	require.True(t, children.Sequential)
	require.Len(t, children.Runs, 2)
	require.Equal(t, `{"query":"b"}`, string(children.Runs[1].Input[0].JSON))
	result, err := resumed(t, WorkflowTool(), c, succeeded("c1", `{"x":1}`), succeeded("c2", `{"x":2}`))
	require.NoError(t, err)
	requireItems(t, `[{"json":{"x":1},"pairedItem":{"item":0}},{"json":{"x":2},"pairedItem":{"item":1}}]`, result.Outputs[0])
	result, err = WorkflowTool().Execute(t.Context(), call(WorkflowTool(), 2.2, `{}`))
	require.NoError(t, err)
	require.Equal(t, []workflow.Items{{}}, result.Outputs)
}
