package core

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// rule is a rule of a Switch: the field n in an order with a number.
func rule(operation, right string) string {
	return `{"conditions":{"options":{"caseSensitive":true,"typeValidation":"strict","version":2},"combinator":"and","conditions":[` +
		`{"leftValue":"={{ $json.n }}","rightValue":` + right + `,"operator":{"type":"number","operation":"` + operation + `"}}]},"renameOutput":true,"outputKey":"x"}`
}

func TestSwitch(t *testing.T) {
	rules := `"rules":{"values":[` + rule("gt", "5") + `,` + rule("gt", "2") + `]}`
	old := `"dataType":"string","value1":"={{ $json.s }}","rules":{"rules":[{"value2":"a"},{"operation":"regex","value2":"/^B/i","output":2}]}`
	for _, test := range []struct {
		name       string
		version    float64
		parameters string
		outputs    int
		want, err  string
	}{
		{"first rule that is met", 3.2, `{` + rules + `,"options":{}}`, 2, "9,9 / 3", ""},
		{"all rules that are met", 3.4, `{` + rules + `,"options":{"allMatchingOutputs":true}}`, 2, "9,9 / 9,3,9", ""},
		{"a fallback of its own", 3.3, `{` + rules + `,"options":{"fallbackOutput":"extra","renameFallbackOutput":"rest"}}`, 3, "9,9 / 3 / 1", ""},
		{"a rule's output as fallback", 3, `{` + rules + `,"options":{"fallbackOutput":1}}`, 2, "9,9 / 3,1", ""},
		{"no fallback", 3.1, `{` + rules + `,"options":{"fallbackOutput":"none"}}`, 2, "9,9 / 3", ""},
		{"a fallback that is not there", 3.2, `{` + rules + `,"options":{"fallbackOutput":7}}`, 2, "", "The fallback output 7 does not exist"},
		{"no rules", 3.2, `{"rules":{"values":[]},"options":{}}`, 0, "", ""},
		{"an index that is computed", 3.2, `{"mode":"expression","numberOutputs":10,"output":"={{ $json.n }}"}`, 10, " / 1 /  / 3 /  /  /  /  /  / 9,9", ""},
		{"an index as text", 3.2, `{"mode":"expression","output":"2"}`, 4, " /  / 9,3,1,9 / ", ""},
		{"an index too high", 3.2, `{"mode":"expression","numberOutputs":3,"output":"={{ $json.n }}"}`, 3, "", notAllowed("9")},
		{"half an index", 3.2, `{"mode":"expression","output":0.5}`, 4, "", notAllowed("0.5")},
		{"no number", 3.2, `{"mode":"expression","output":""}`, 4, "", "Invalid input for 'Output Index' [item 0]"},
		{"version 2: each rule an output", 2, `{` + old + `,"fallbackOutput":"extra"}`, 3, "9,9 / 3 / 1", ""},
		{"version 2: index", 2, `{"mode":"expression","outputsAmount":2,"output":1}`, 2, " / 9,3,1,9", ""},
		{"version 1: outputs by rule", 1, `{` + old + `,"fallbackOutput":3}`, 4, "9,9 /  / 3 / 1", ""},
		{"version 1: no fallback", 1, `{` + old + `}`, 4, "9,9 /  / 3 / ", ""},
		{"version 1: smaller is the default of numbers", 1, `{"value1":"={{ $json.n }}","rules":{"rules":[{"value2":4}]}}`, 4, "3,1 /  /  / ", ""},
		{"version 1: bad output", 1, `{"value1":"={{ $json.n }}","rules":{"rules":[{"value2":4,"output":4}]}}`, 4, "", notAllowed("4") + "It has to be between 0 and 3!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			nodeType := Switch()
			if test.version < 3 {
				nodeType = SwitchOld()
			}
			call := nodestest.Call(nodeType, test.parameters, nodestest.Items(`{"n":9,"s":"a"}`, `{"n":3,"s":"bc"}`, `{"n":1,"s":"c"}`, `{"n":9,"s":"a"}`))
			call.Node.TypeVersion = test.version
			if got := nodeType.OutputCount(call.Node); got != test.outputs {
				t.Errorf("outputs: got %d, want %d", got, test.outputs)
			}
			result, err := nodeType.Execute(context.Background(), call)
			if test.err != "" {
				var failure *engine.NodeError
				if !errors.As(err, &failure) || failure.Message != test.err {
					t.Fatalf("error: got %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := numbers(result.Outputs); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// numbers lists the field n of the items of each output.
func numbers(outputs []workflow.Items) string {
	var lists []string
	for _, items := range outputs {
		var list []string
		for _, item := range items {
			list = append(list, strings.TrimPrefix(strings.Split(string(item.JSON), ",")[0], `{"n":`))
		}
		lists = append(lists, strings.Join(list, ","))
	}
	return strings.Join(lists, " / ")
}

func TestSwitchLooseTypes(t *testing.T) {
	loose := strings.Replace(rule("equals", "1"), "strict", "loose", 1)
	out := nodestest.Run(t, Switch(), `{"rules":{"values":[`+loose+`]},"looseTypeValidation":true,"options":{}}`, nodestest.Items(`{"n":"1"}`, `{"n":2}`))
	if got, want := numbers(out), `"1"}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExecutionData(t *testing.T) {
	call := nodestest.Call(ExecutionData(), `{"dataToSave":{"values":[{"key":"order_id","value":"={{ $json.id }}"},{"key":"long","value":"`+
		strings.Repeat("x", 600)+`"}]}}`, nodestest.Items(`{"id":5}`, `{"id":"six"}`))
	result, err := call.Type.Execute(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Outputs[0]) != 2 || len(result.Logs) != 4 || result.Logs[0] != "execution data: order_id = 5" || result.Logs[2] != "execution data: order_id = six" {
		t.Errorf("got %d items and the log %q", len(result.Outputs[0]), result.Logs)
	}
	if want := "execution data: long = " + strings.Repeat("x", maxDataValue); result.Logs[1] != want {
		t.Errorf("a long value: got %d characters, want %d", len(result.Logs[1]), len(want))
	}
	bad := nodestest.Call(ExecutionData(), `{"dataToSave":{"values":[{"key":"order id","value":1}]}}`, nodestest.Items(`{}`))
	if _, err := bad.Type.Execute(context.Background(), bad); err == nil || err.Error() != `The key "order id" of the execution data is not allowed` {
		t.Errorf("a bad key: got %v", err)
	}
	bad.Node.OnError = workflow.OnErrorContinue
	if result, err := bad.Type.Execute(context.Background(), bad); err != nil || !strings.Contains(string(result.Outputs[0][0].JSON), "error") {
		t.Errorf("a bad key with onError continue: got %v", err)
	}
}
