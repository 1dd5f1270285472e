package ai

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/nodes/toolname"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestCalculate(t *testing.T) {
	for text, want := range map[string]string{
		"6*7": "42", "0.1+0.2": "0.30000000000000004", "1/3": "0.3333333333333333", "10 % 4": "2", "-7 % 3": "-1",
		"2^10": "1024", "2**3**2": "512", "-2^2": "-4", "2^-1": "0.5", "(1 + 2) * -3": "-9", "1e3": "1000", ".5*2": "1",
		"1e21": "1e+21", "1/1e7": "1e-7", "123456789012345680000": "123456789012345680000", "1/0": "Infinity", "-1/0": "-Infinity", "0/0": "NaN", "-0": "0",
		"sqrt(2)": "1.4142135623730951", "sqrt 16": "4", "round(2.5)": "3", "round(-2.5)": "-2", "round(3.14159, 2)": "3.14", "floor(-1.5)": "-2", "abs(-3)": "3",
		"sin(0)": "0", "cos(pi)": "-1", "log(E)": "1", "log(8, 2)": "3", "log10(1000)": "3", "ln(1)": "0", "exp(0)": "1", "PI": "3.141592653589793",
		"5!": "120", "3!+1": "7", "factorial(5)": "120", "max(1, 3, 2)": "3", "min(4,2)": "2", "pow(2,3)": "8", "hypot(3,4)": "5", "mean(1,2,3)": "2",
		"1 < 2": "true", "1 == 2 or 3 >= 3": "true", "not (1 < 2)": "false", "3 != 4 and 1 > 2": "false", "2 > 1 ? 10 : 20": "10", "if(0, 1, 2)": "2",
		"Math.max(1, 2)": "2", "1 + true": "2",
	} {
		require.Equal(t, want, calculated(text), text)
	}
	for _, text := range []string{"", "what is 2+2", "2+", "(1", "1 2", "foo(1)", "sqrt(1", "2 ? 3", "sqrt()", "alert(1)", "1..2", "\x00", string(make([]byte, 5))} {
		require.Equal(t, cannotCalculate, calculated(text), "%q", text)
	}
	require.Equal(t, cannotCalculate, calculated(strings.Repeat("(", 100000)))
}

func FuzzCalculate(f *testing.F) {
	f.Add("1+2*3^sqrt(4)!")
	f.Add("1<2?-x:Math.PI")
	f.Fuzz(func(t *testing.T, text string) { require.NotEmpty(t, calculated(text)) })
}

func TestTextToolsWithoutAgent(t *testing.T) {
	out := nodestest.Run(t, Calculator(), `{}`, nodestest.Items(`{"input":"6*7"}`, `{}`))
	require.Equal(t, `{"response":"42"}`, string(out[0][0].JSON))
	require.Equal(t, `{"response":"I don't know how to do that."}`, string(out[0][1].JSON))
	require.Equal(t, workflow.Paired(1), out[0][1].PairedItem)
	out = nodestest.Run(t, ThinkTool(), `{}`, nodestest.Items(`{"input":"hm"}`))
	require.Equal(t, `{"response":"hm"}`, string(out[0][0].JSON))
}

func codeCall(parameters string, script func(node.Script) (*node.ScriptResult, error)) *node.Call {
	call := nodestest.Call(CodeTool(), parameters, nodestest.Items(`{"input":"from item","other":1}`))
	call.RunScript = func(_ context.Context, _ *node.Call, s node.Script) (*node.ScriptResult, error) { return script(s) }
	return call
}

func TestCodeTool(t *testing.T) {
	const own = `{"jsCode":"x","specifyInputSchema":true,"jsonSchemaExample":"{\"a\":1}"}`
	for name, tt := range map[string]struct{ parameters, arguments, query, result, kind, want, problem string }{
		"text":                   {`{"jsCode":"x"}`, `{"input":"hi"}`, `"hi"`, `"HI"`, "string", `{"response":"HI"}`, ""},
		"without an agent":       {`{"jsCode":"x"}`, ``, `"from item"`, `"ok"`, "string", `{"response":"ok"}`, ""},
		"number":                 {`{"jsCode":"x"}`, `{"input":"hi"}`, `"hi"`, `4.5`, "number", `{"response":"4.5"}`, ""},
		"own schema":             {own, `{"a":5}`, `{"a":5}`, `"five"`, "string", `{"response":"five"}`, ""},
		"object, which is wrong": {`{"jsCode":"x"}`, `{"input":"hi"}`, `"hi"`, `{}`, "object", "", "The response property should be a string, but it is an object"},
		"nothing":                {`{"jsCode":"x"}`, `{"input":"hi"}`, `"hi"`, ``, "undefined", "", "The response property should be a string, but it is an undefined"},
	} {
		t.Run(name, func(t *testing.T) {
			call := codeCall(tt.parameters, func(s node.Script) (*node.ScriptResult, error) {
				require.Equal(t, "x", s.Code)
				require.JSONEq(t, tt.query, string(s.Globals["query"]))
				return &node.ScriptResult{Value: json.RawMessage(tt.result), Type: tt.kind, Logs: []string{"log"}}, nil
			})
			if tt.arguments != "" {
				call.ToolArguments = json.RawMessage(tt.arguments)
			}
			result, err := call.Type.Execute(context.Background(), call)
			require.NoError(t, err)
			require.Equal(t, []string{"log"}, result.Logs)
			if tt.problem != "" {
				require.Equal(t, "Wrong output type returned", result.Error.Message)
				require.Equal(t, tt.problem, result.Error.Description)
				return
			}
			require.Nil(t, result.Error)
			require.Equal(t, tt.want, string(result.Outputs[0][0].JSON))
		})
	}
}

func TestCodeToolThatThrows(t *testing.T) {
	call := codeCall(`{"jsCode":"x"}`, func(node.Script) (*node.ScriptResult, error) {
		return &node.ScriptResult{Logs: []string{"before"}}, &engine.NodeError{Message: "boom [line 1]"}
	})
	call.ToolArguments = json.RawMessage(`{"input":""}`)
	result, err := call.Type.Execute(context.Background(), call)
	require.NoError(t, err)
	require.Equal(t, "boom [line 1]", result.Error.Message)
	require.Equal(t, []string{"before"}, result.Logs)

	broken := errors.New("engine gone")
	call = codeCall(`{"jsCode":"x"}`, func(node.Script) (*node.ScriptResult, error) { return nil, broken })
	_, err = call.Type.Execute(context.Background(), call)
	require.ErrorIs(t, err, broken)

	call = codeCall(`{"language":"python","pythonCode":"x"}`, nil)
	result, err = call.Type.Execute(context.Background(), call)
	require.NoError(t, err)
	require.Equal(t, "Code tools in Python are not supported", result.Error.Message)
}

func TestDescriptions(t *testing.T) {
	describe := func(typ *node.Type, version float64, parameters string) *node.ToolDescription {
		call := nodestest.Call(typ, parameters, nodestest.Items(`{}`))
		call.Node.Name, call.Node.TypeVersion = "My Tool", version
		d, err := typ.Describe(context.Background(), call)
		require.NoError(t, err)
		require.NoError(t, compiles(d.Schema))
		return d
	}
	require.Equal(t, "My Tool", describe(Calculator(), 1, `{}`).Name)
	require.Equal(t, "old_name", describe(CodeTool(), 1.1, `{"name":"old_name","description":"d"}`).Name)
	code := describe(CodeTool(), 1.3, `{"description":"d","specifyInputSchema":true,"schemaType":"manual","inputSchema":"{\"type\": \"object\"}"}`)
	require.Equal(t, node.ToolDescription{Name: "My Tool", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}, *code)
	agent := describe(typeOf(t, "agentTool"), 3, `{"toolDescription":"computes","text":"={{ $fromAI('Prompt__User_Message_', 'what', 'string') }}"}`)
	require.JSONEq(t, `{"type":"object","properties":{"Prompt__User_Message_":{"type":"string","description":"what"}},"required":["Prompt__User_Message_"],"additionalProperties":false}`, string(agent.Schema))
}

func compiles(schema json.RawMessage) error { _, err := schemas.get(schema); return err }

func TestToolNamesAreLegalAndDistinct(t *testing.T) {
	box := &toolbox{byName: map[string]*tool{}}
	long := ""
	for range 80 {
		long += "x"
	}
	for _, name := range []string{"Calculator Node", "Calculator_Node", "Calculator  (Node", "größe", "", long, long} {
		box.add(&tool{name: name, node: name})
	}
	var names []string
	for _, one := range box.tools {
		require.LessOrEqual(t, len(one.name), toolname.Max)
		names = append(names, one.name)
	}
	require.Equal(t, []string{"Calculator_Node", "Calculator_Node_2", "Calculator_Node_3", "gr_e", "tool", long[:64], long[:62] + "_2"}, names)
	require.Equal(t, "Calculator Node", box.find("Calculator Node").node, "a model may write the node's name")
	require.Nil(t, box.find("Calculator"))
}

func TestSubNodesDoNotRun(t *testing.T) {
	for _, typ := range Types() {
		if !typ.SubNode {
			continue
		}
		_, err := typ.Execute(context.Background(), nodestest.Call(typ, `{}`))
		require.ErrorContains(t, err, "cannot run by itself")
	}
}

// typeOf is the type of the family with a name.
func typeOf(t testing.TB, name string) *node.Type {
	t.Helper()
	types := Types()
	i := slices.IndexFunc(types, func(t *node.Type) bool { return t.Type == family+name })
	require.GreaterOrEqual(t, i, 0, name)
	return types[i]
}
