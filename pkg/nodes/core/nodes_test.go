package core

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func condition1(validation, left, kind, operation, right string) string {
	return `{"conditions":{"options":{"caseSensitive":true,"typeValidation":"` + validation + `","version":2},"combinator":"and","conditions":[` +
		`{"leftValue":` + left + `,"rightValue":` + right + `,"operator":{"type":"` + kind + `","operation":"` + operation + `"}}]},"options":{}}`
}

func TestConditions(t *testing.T) {
	for _, test := range []struct {
		name, parameters string
		met              bool
		err              string
	}{
		{"strict wrong type", condition1("strict", `"={{ $json.s }}"`, "number", "equals", "1"), false,
			"Wrong type: 'abc' is a string but was expecting a number [condition 0, item 0]"},
		{"loose cannot convert", condition1("loose", `"={{ $json.s }}"`, "number", "equals", "1"), false,
			"Conversion error: the string 'abc' can't be converted to a number [condition 0, item 0]"},
		{"strict wrong right side", condition1("strict", `1`, "number", "gt", `""`), false,
			"Wrong type: '' is a string but was expecting a number [condition 0, item 0]"},
		{"strict object for a text", condition1("strict", `"={{ $json.o }}"`, "string", "contains", `"a"`), false,
			`Wrong type: '{"a":1}' is an object but was expecting a string [condition 0, item 0]`},
		{"loose number from text", condition1("loose", `"5"`, "number", "gt", `"4"`), true, ""},
		{"loose boolean from text", condition1("loose", `"TRUE"`, "boolean", "equals", "true"), true, ""},
		{"loose text from number", condition1("loose", "5", "string", "equals", `"5"`), true, ""},
		{"undefined text is empty", condition1("strict", `"={{ $json.zzz }}"`, "string", "equals", `""`), true, ""},
		{"regular expression with flags", condition1("strict", `"Hello"`, "string", "regex", `"/^hel/i"`), true, ""},
		{"date without offset is local", condition1("loose", `"2024-06-01 14:00"`, "dateTime", "equals", `"2024-06-01T12:00:00Z"`), true, ""},
		{"unknown operation", condition1("loose", "1", "number", "larger", "0"), false, ""},
		{"look-around", condition1("strict", `"a"`, "string", "regex", `"(?=a)"`), false,
			"regular expression \"(?=a)\": error parsing regexp: invalid or unsupported Perl syntax: `(?=`; look-around and back references are not supported here, use a Code node"},
	} {
		t.Run(test.name, func(t *testing.T) {
			call := nodestest.Call(If(), test.parameters, nodestest.Items(`{"s":"abc","o":{"a":1}}`))
			call.Workflow.Timezone = "Europe/Berlin"
			result, err := call.Type.Execute(context.Background(), call)
			if test.err != "" {
				var failure *engine.NodeError
				if !errors.As(err, &failure) || failure.Message != test.err || failure.ItemIndex == nil || *failure.ItemIndex != 0 {
					t.Fatalf("got %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if met := len(result.Outputs[0]) == 1; met != test.met {
				t.Errorf("met: got %v, want %v", met, test.met)
			}
		})
	}
}

func TestOldConditions(t *testing.T) {
	for _, test := range []struct {
		name, parameters string
		met              bool
	}{
		{"equality is strict", `{"conditions":{"number":[{"value1":"5","operation":"equal","value2":5}]}}`, false},
		{"default operation of numbers", `{"conditions":{"number":[{"value1":"={{ $json.n }}","value2":9}]}}`, true},
		{"empty object", `{"conditions":{"string":[{"value1":"={{ $json.o }}","operation":"isEmpty"}]}}`, true},
		{"before", `{"conditions":{"dateTime":[{"value1":"2024-01-01","operation":"before","value2":"2024-01-02"}]}}`, true},
		{"all", `{"conditions":{"number":[{"value1":1,"value2":2}],"boolean":[{"value1":true,"value2":false}]}}`, false},
		{"any", `{"combineOperation":"any","conditions":{"number":[{"value1":1,"value2":2}],"boolean":[{"value1":true,"value2":false}]}}`, true},
		{"none at all", `{"conditions":{}}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := nodestest.Run(t, IfOld(), test.parameters, nodestest.Items(`{"n":5,"o":{}}`))
			if met := len(out[0]) == 1; met != test.met {
				t.Errorf("met: got %v, want %v", met, test.met)
			}
		})
	}
}

func TestSetConversions(t *testing.T) {
	for _, test := range []struct{ kind, value, want string }{
		{"string", `1.50`, `"1.5"`},
		{"string", `12345678901234567890`, `"12345678901234567890"`},
		{"string", `1e-7`, `"1e-7"`},
		{"string", `{"a": [1, 2]}`, `"{\"a\":[1,2]}"`},
		{"number", `" 12 "`, `12`},
		{"number", `"0x10"`, `16`},
		{"number", `"1e3"`, `1e3`},
		{"number", `true`, `1`},
		{"number", `"1_000"`, ``},
		{"number", `"Infinity"`, ``},
		{"number", `[]`, ``},
		{"boolean", `"False"`, `false`},
		{"boolean", `"2"`, ``},
		{"array", `"['a']"`, `["a"]`},
		{"array", `{"a":1}`, ``},
		{"object", `"[1]"`, ``},
		{"object", `null`, `null`},
		{"number", `"+5"`, `5`},
	} {
		t.Run(test.kind+" "+test.value, func(t *testing.T) {
			parameters := `{"assignments":{"assignments":[{"name":"v","type":"` + test.kind + `","value":` + test.value + `}]},"options":{}}`
			call := nodestest.Call(Set(), parameters, nodestest.Items(`{}`))
			result, err := call.Type.Execute(context.Background(), call)
			switch {
			case test.want == "" && err == nil:
				t.Errorf("got %s, want an error", result.Outputs[0][0].JSON)
			case test.want == "":
			case err != nil:
				t.Error(err)
			case string(result.Outputs[0][0].JSON) != `{"v":`+test.want+`}`:
				t.Errorf("got %s, want %s", result.Outputs[0][0].JSON, test.want)
			}
		})
	}
}

func TestSetOptions(t *testing.T) {
	file := workflow.Items{{JSON: json.RawMessage(`{}`), Binary: map[string]workflow.Binary{"data": {FileName: "a.txt"}}}}
	for _, test := range []struct {
		name, parameters string
		items            workflow.Items
		want             string
	}{
		{"keep what cannot be converted", `{"assignments":{"assignments":[{"name":"v","type":"number","value":"x"}]},"options":{"ignoreConversionErrors":true}}`,
			nodestest.Items(`{}`), "\n  output 0\n    {\"v\":\"x\"} {\"item\":0}"},
		{"dots are part of the name", `{"assignments":{"assignments":[{"name":"a.b","type":"number","value":1}]},"options":{"dotNotation":false}}`,
			nodestest.Items(`{}`), "\n  output 0\n    {\"a.b\":1} {\"item\":0}"},
		{"file under another name", `{"assignments":{"assignments":[{"name":"f","type":"binary","value":"data"}]},"options":{}}`,
			file, "\n  output 0\n    {} {\"item\":0} {\"f\":{\"fileName\":\"a.txt\"}}"},
		{"files stay with the fields", `{"includeOtherFields":true,"options":{}}`,
			file, "\n  output 0\n    {} {\"item\":0} {\"data\":{\"fileName\":\"a.txt\"}}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := nodestest.Render(nodestest.Run(t, Set(), test.parameters, test.items)); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
	call := nodestest.Call(Set(), `{"mode":"raw","jsonOutput":"{\"a\":1}","duplicateItem":true,"duplicateCount":2}`, nodestest.Items(`{}`))
	call.Execution.Mode = "manual"
	result, err := call.Type.Execute(context.Background(), call)
	if err != nil || len(result.Outputs[0]) != 3 {
		t.Errorf("duplicates in a manual execution: got %d items and %v, want 3", len(result.Outputs[0]), err)
	}
}

func TestMergeOptions(t *testing.T) {
	left := nodestest.Items(`{"id":1,"v":"a"}`, `{"id":2,"v":"b"}`, `{"id":3}`)
	right := nodestest.Items(`{"id":"1","v":""}`, `{"id":null}`)
	for _, test := range []struct{ name, parameters, want string }{
		{"unpaired", `{"mode":"combine","combineBy":"combineByPosition","options":{"includeUnpaired":true,"clashHandling":{"values":{"overrideEmpty":true}}}}`,
			"\n  output 0\n    {\"id\":\"1\",\"v\":\"a\"} [{\"item\":0},{\"item\":0,\"input\":1}]\n    {\"id\":2,\"v\":\"b\"} [{\"item\":1},{\"item\":1,\"input\":1}]\n    {\"id\":3} {\"item\":2}"},
		{"types differ", `{"mode":"combine","fieldsToMatchString":"id","options":{}}`, ""},
		{"fuzzy", `{"mode":"combine","fieldsToMatchString":"id","options":{"fuzzyCompare":true}}`,
			"\n  output 0\n    {\"id\":\"1\",\"v\":\"\"} [{\"item\":0},{\"item\":0,\"input\":1}]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := nodestest.Render(nodestest.Run(t, Merge(), test.parameters, left, right)); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestMergeWaitsOnlyToChooseABranch(t *testing.T) {
	for parameters, want := range map[string]int{
		`{"mode":"append"}`: 0, `{"mode":"chooseBranch"}`: 2, `{"mode":"chooseBranch","numberInputs":3}`: 3,
	} {
		n := &workflow.Node{TypeVersion: 3.2, Parameters: json.RawMessage(parameters)}
		if got := Merge().RequiredInputs(n); len(got) != want {
			t.Errorf("%s: got %v, want %d inputs", parameters, got, want)
		}
	}
}

func TestLoopOfTheFirstInput(t *testing.T) {
	// A loop that was given the execution's own input has no record to read it from.
	call := nodestest.Call(Loop(), `{"batchSize":2}`, nodestest.Items(`{"n":1}`, `{"n":2}`, `{"n":3}`))
	call.Source = nil
	first, err := call.Type.Execute(context.Background(), call)
	if err != nil || len(first.Outputs[1]) != 2 {
		t.Fatalf("first run: %+v, %v", first, err)
	}
	back := nodestest.Call(Loop(), `{"batchSize":2}`, nodestest.Items(`{"x":1}`))
	back.RunIndex, back.Context = 1, first.Context
	second, err := back.Type.Execute(context.Background(), back)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := nodestest.Render(second.Outputs), "\n  output 0\n  output 1\n    {\"n\":3} {\"item\":2}"; got != want {
		t.Errorf("second run: got %s, want %s", got, want)
	}
}

func TestLoopStoresNoItems(t *testing.T) {
	call := nodestest.Call(Loop(), `{}`, nodestest.Items(`{"n":1}`, `{"n":2}`))
	result, err := call.Type.Execute(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(result.Context), `{"start":0,"next":1}`; got != want {
		t.Errorf("context: got %s, want %s", got, want)
	}
}

func TestFirstLoopVersionsEnd(t *testing.T) {
	for version, want := range map[float64]string{1: "", 2: "\n  output 0\n  output 1\n    {\"x\":1} {\"item\":0,\"sourceOverwrite\":{\"previousNode\":\"Before\",\"previousNodeOutput\":0,\"previousNodeRun\":0}}"} {
		call := nodestest.Call(Loop(), `{}`, nodestest.Items(`{"x":1}`))
		call.Node.TypeVersion, call.RunIndex, call.Context = version, 1, json.RawMessage(`{"start":0,"next":1}`)
		call.RunData = nodestest.RunData{
			"Node":   {{Source: []*workflow.Source{{PreviousNode: "Before"}}}},
			"Before": {{Main: []workflow.Items{nodestest.Items(`{"n":1}`)}}},
		}
		result, err := call.Type.Execute(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		if version == 1 && result.Outputs != nil {
			t.Errorf("version 1 ends its branch with nothing, got %v", result.Outputs)
		}
		if got := nodestest.Render(result.Outputs); got != want {
			t.Errorf("version %v: got %s, want %s", version, got, want)
		}
	}
}

func TestStopWithAnObject(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"errorType":"errorObject","errorObject":"{\"message\":\"no\",\"code\":7}"}`: "no",
		`{"errorType":"errorObject","errorObject":{"code":7}}`:                        `Error: {"code":7}`,
		`{"errorMessage":"=stop {{ $json.n }}"}`:                                      "stop 1",
	} {
		call := nodestest.Call(StopAndError(), parameters, nodestest.Items(`{"n":1}`))
		if _, err := call.Type.Execute(context.Background(), call); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", parameters, err, want)
		}
	}
}

func TestTriggerWithoutInput(t *testing.T) {
	for _, nodeType := range Triggers() {
		if got, want := nodestest.Render(nodestest.Run(t, nodeType, `{}`)), "\n  output 0\n    {} {\"item\":0}"; got != want {
			t.Errorf("%s: got %s, want %s", nodeType.Type, got, want)
		}
	}
}

// Set with three fields on one item is on the coordinator's hot path: it should
// stay below ten microseconds.
func BenchmarkSet(b *testing.B) {
	call := nodestest.Call(Set(), `{"assignments":{"assignments":[`+
		`{"id":"a","name":"question","value":"shout hi and compute 6 * 7","type":"string"},`+
		`{"id":"b","name":"n","value":"={{ $json.n }}","type":"number"},`+
		`{"id":"c","name":"o.s","value":"={{ $json.s }}","type":"string"}]},"options":{}}`, nodestest.Items(`{"n":5,"s":"text","more":[1,2,3]}`))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := call.Type.Execute(context.Background(), call); err != nil {
			b.Fatal(err)
		}
	}
}
