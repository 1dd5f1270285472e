package core

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// script is what a fake JavaScript engine answers.
type script struct {
	kind, value string
	err         error
}

func (s script) run(context.Context, *node.Call, node.Script) (*node.ScriptResult, error) {
	result := &node.ScriptResult{Type: s.kind, Value: json.RawMessage(s.value), Logs: []string{"hello"}}
	return result, s.err
}

// runEach is a fake engine that runs code on each of n items.
func runEach(s node.Script, n int, answers []script) (*node.ScriptResult, error) {
	if s.Item != node.EachItem {
		return nil, errors.New("code for each item must be run on each")
	}
	all := &node.ScriptResult{Logs: []string{"hello"}}
	for i := range n {
		answer := answers[min(i, len(answers)-1)]
		result := node.ScriptResult{Type: answer.kind, Value: json.RawMessage(answer.value)}
		thrown := errors.As(answer.err, &result.Err)
		all.Each = append(all.Each, result)
		if thrown && !s.GoOn {
			break
		}
	}
	return all, nil
}

func codeCall(mode string, onError workflow.OnError, answers ...script) *node.Call {
	call := nodestest.Call(Code(), `{"mode":"`+mode+`","jsCode":"x"}`, nodestest.Items(`{"n":1}`, `{"n":2}`, `{"n":3}`))
	call.Node.OnError = onError
	call.RunScript = func(ctx context.Context, call *node.Call, s node.Script) (*node.ScriptResult, error) {
		if mode == "runOnceForEachItem" {
			return runEach(s, len(call.Inputs[0]), answers)
		}
		if s.Item != node.AllItems {
			return nil, errors.New("code for all items must not be run on one")
		}
		return answers[0].run(ctx, call, s)
	}
	return call
}

// The messages are those n8n 2.41.1 recorded.
func TestCodeForAllItems(t *testing.T) {
	const wrong = "Code doesn't return items properly"
	boom := &engine.NodeError{Name: "WrappedExecutionError", Message: "boom [line 1]"}
	for _, test := range []struct {
		name    string
		answer  script
		onError workflow.OnError
		want    string
		err     string
	}{
		{name: "items", answer: script{"array", `[{"json":{"b":1,"a":2.50}},{"json":{},"pairedItem":2}]`, nil},
			want: "\n  output 0\n    {\"b\":1,\"a\":2.50} null\n    {} {\"item\":2}"},
		{name: "plain objects", answer: script{"array", `[{"a":1},{"b":2}]`, nil}, want: "\n  output 0\n    {\"a\":1} null\n    {\"b\":2} null"},
		{name: "one object", answer: script{"object", `{"a":1}`, nil}, want: "\n  output 0\n    {\"a\":1} null"},
		{name: "one item", answer: script{"object", `{"json":{"a":1}}`, nil}, want: "\n  output 0\n    {\"a\":1} null"},
		{name: "empty list", answer: script{"array", `[]`, nil}},
		{name: "file", answer: script{"array", `[{"json":{},"binary":{"data":{"data":"aGk=","mimeType":"text/plain"}}}]`, nil},
			want: "\n  output 0\n    {} null {\"data\":{\"mimeType\":\"text/plain\",\"data\":\"aGk=\"}}"},
		{name: "null", answer: script{"null", `null`, nil}},
		{name: "undefined", answer: script{"undefined", ``, nil}, err: wrong},
		{name: "number", answer: script{"number", `5`, nil}, err: wrong},
		{name: "string", answer: script{"string", `"x"`, nil}, err: wrong},
		{name: "function", answer: script{"function", ``, nil}, err: wrong},
		{name: "list of numbers", answer: script{"array", `[1,2]`, nil}, err: wrong},
		{name: "list of null", answer: script{"array", `[null]`, nil}, err: wrong},
		{name: "list in a list", answer: script{"array", `[[{"json":{}}]]`, nil}, err: wrong},
		{name: "json is a string", answer: script{"array", `[{"json":"x"}]`, nil}, err: "A 'json' property isn't an object [item 0]"},
		{name: "json is a list", answer: script{"array", `[{"json":[1]}]`, nil}, err: "A 'json' property isn't an object [item 0]"},
		{name: "mixed", answer: script{"array", `[{"json":{}},{"a":1}]`, nil}, err: "Unknown top-level item key: a [item 1]"},
		{name: "unknown key", answer: script{"array", `[{"json":{},"extra":1}]`, nil}, err: "Invalid output format [item 0]"},
		{name: "throws", answer: script{err: boom}, err: "boom [line 1]"},
		{name: "throws and continues", answer: script{err: boom}, onError: workflow.OnErrorContinue, want: "\n  output 0\n    {\"error\":\"boom [line 1]\"} null"},
		{name: "bad shape and continues", answer: script{"number", `5`, nil}, onError: workflow.OnErrorContinue, err: wrong},
		{name: "stopped and continues", answer: script{err: &engine.NodeError{Message: "too slow", Reason: engine.ReasonTimeout}}, onError: workflow.OnErrorContinue, err: "too slow"},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkCode(t, codeCall("runOnceForAllItems", test.onError, test.answer), test.want, test.err)
		})
	}
}

func TestCodeForEachItem(t *testing.T) {
	one := script{"object", `{"n":1}`, nil}
	bad := script{err: &engine.NodeError{Message: "bad item [line 1]"}}
	const notObject = "A 'json' property isn't an object [item 0]"
	for _, test := range []struct {
		name    string
		answers []script
		onError workflow.OnError
		want    string
		err     string
	}{
		{name: "json and items", answers: []script{one, {"object", `{"json":{"n":2},"pairedItem":{"item":7}}`, nil}, one},
			want: "\n  output 0\n    {\"n\":1} {\"item\":0}\n    {\"n\":2} {\"item\":1}\n    {\"n\":1} {\"item\":2}"},
		{name: "null is left out", answers: []script{one, {"null", `null`, nil}, one},
			want: "\n  output 0\n    {\"n\":1} {\"item\":0}\n    {\"n\":1} {\"item\":2}"},
		{name: "list", answers: []script{{"array", `[{"json":{"a":1}}]`, nil}}, err: notObject},
		{name: "number", answers: []script{{"number", `5`, nil}}, err: notObject},
		{name: "throws", answers: []script{one, bad}, err: "bad item [line 1]"},
		{name: "throws and continues", answers: []script{one, bad, one}, onError: workflow.OnErrorOutput,
			want: "\n  output 0\n    {\"n\":1} {\"item\":0}\n    {\"error\":\"bad item [line 1]\"} {\"item\":1}\n    {\"n\":1} {\"item\":2}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkCode(t, codeCall("runOnceForEachItem", test.onError, test.answers...), test.want, test.err)
		})
	}
}

func checkCode(t *testing.T, call *node.Call, want, wantErr string) {
	t.Helper()
	result, err := call.Type.Execute(context.Background(), call)
	if err == nil && result.Error != nil {
		err = result.Error
	}
	if wantErr != "" {
		if err == nil || err.Error() != wantErr {
			t.Fatalf("error: got %v, want %s", err, wantErr)
		}
	} else if err != nil {
		t.Fatal(err)
	} else if got := nodestest.Render(result.Outputs); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if result == nil || len(result.Logs) == 0 || result.Logs[0] != "hello" {
		t.Errorf("what was written to the console is lost: %+v", result)
	}
}

func TestCodeThatDoesNotRun(t *testing.T) {
	for _, test := range []struct{ name, parameters, want string }{
		{"no code", `{"jsCode":""}`, "Unknown error"},
		{"no python", `{"language":"pythonNative","jsCode":"return null"}`, "Unknown error"},
		{"all items in code for each", `{"mode":"runOnceForEachItem","jsCode":"// $input.all()\nreturn { l: $input.all().length };"}`,
			"Can't use .all() here [line 2, for item 0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			call := nodestest.Call(Code(), test.parameters, nodestest.Items(`{}`))
			call.RunScript = func(context.Context, *node.Call, node.Script) (*node.ScriptResult, error) {
				t.Error("the script ran")
				return nil, nil
			}
			_, err := call.Type.Execute(context.Background(), call)
			var failure *engine.NodeError
			if !errors.As(err, &failure) || failure.Message != test.want || failure.Description == "" {
				t.Errorf("got %v, want %s with a description", err, test.want)
			}
		})
	}
}
