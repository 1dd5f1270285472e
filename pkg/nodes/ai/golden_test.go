package ai

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// goldenCase is what a real n8n did with a workflow; where expect is "better"
// the case is listed in betterCases.
type goldenCase struct {
	Name, Expect, Status, Error string
	Input                       []json.RawMessage
	Workflow                    json.RawMessage
	Requests                    *int
	Runs                        map[string]int
	Output                      []json.RawMessage
	Tools                       map[string][]json.RawMessage
	Parsed                      []json.RawMessage
}

func loadGolden(t *testing.T) []goldenCase {
	raw, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var cases []goldenCase
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.NotEmpty(t, cases)
	return cases
}

var callIDs = regexp.MustCompile(`call_[0-9a-f]{8,}(_\d+)?`)

func normal(raw json.RawMessage) string { return callIDs.ReplaceAllString(string(raw), "call") }

func TestGolden(t *testing.T) {
	script, err := os.ReadFile("testdata/scenarios.json")
	require.NoError(t, err)
	for _, c := range loadGolden(t) {
		t.Run(c.Name, func(t *testing.T) {
			server := scripted(t, script)
			p := newPlay(t, c.Workflow, server.URL)
			var input workflow.Items
			for _, one := range c.Input {
				input = append(input, workflow.Item{JSON: one})
			}
			result, err := p.run("AI Agent", input, nil)
			for _, body := range server.bodies {
				checkHistory(t, body)
			}
			if check, ok := betterCases[c.Name]; ok {
				require.Equal(t, "better", c.Expect)
				require.NoError(t, err)
				check(t, p, outputs(result), len(server.bodies))
				return
			}
			require.Equal(t, "same", c.Expect)
			c.compare(t, p, result, err, len(server.bodies))
		})
	}
}

func outputs(result *node.Result) []string {
	var list []string
	if len(result.Outputs) > 0 {
		for _, item := range result.Outputs[0] {
			list = append(list, normal(item.JSON))
		}
	}
	return list
}

func (c goldenCase) compare(t *testing.T, p *play, result *node.Result, err error, requests int) {
	if c.Requests != nil {
		require.Equal(t, *c.Requests, requests, "model requests")
	}
	for name, runs := range c.Runs {
		require.Equal(t, runs, p.runs[name]+len(p.subRuns[name]), "runs of %s", name)
	}
	for name, want := range c.Tools {
		for i := range want {
			require.JSONEq(t, normal(want[i]), normal(p.tools[name][i]), "%s run %d", name, i)
		}
	}
	var parsed []json.RawMessage
	for _, runs := range p.subRuns {
		for _, run := range runs {
			if run.Type == workflow.OutputParser {
				parsed = append(parsed, run.Output[0][0].JSON)
			}
		}
	}
	require.Len(t, parsed, len(c.Parsed))
	for i := range parsed {
		require.JSONEq(t, string(c.Parsed[i]), string(parsed[i]))
	}
	switch c.Status {
	case "": // a tool ended the execution, the Agent has no record
		require.ErrorIs(t, err, errStopped)
		return
	case "error":
		require.NoError(t, err)
		require.NotNil(t, result.Error)
		require.Equal(t, c.Error, result.Error.Message)
		require.Equal(t, "NodeOperationError", result.Error.Name)
		return
	}
	require.NoError(t, err)
	require.Nil(t, result.Error)
	got := outputs(result)
	require.Len(t, got, len(c.Output))
	for i := range got {
		if c.Name == "e6_model_error_continue" {
			// The engine joins an error item with its input.
			require.JSONEq(t, `{"error":"The service was not able to process your request"}`, got[i])
			continue
		}
		require.JSONEq(t, normal(c.Output[i]), got[i])
		require.Equal(t, workflow.Paired(i), result.Outputs[0][i].PairedItem)
	}
}

// betterCases are those where n8n is wrong, with what is right.
var betterCases = map[string]func(t *testing.T, p *play, outputs []string, requests int){
	"a2_two_tools_v0": func(t *testing.T, p *play, outputs []string, requests int) {
		require.Len(t, outputs, 1)
		require.Contains(t, outputs[0], "42")
		require.Contains(t, outputs[0], "SHOUT HI")
		require.Equal(t, 2, requests)
	},
	"b3_bad_args": func(t *testing.T, p *play, outputs []string, requests int) {
		require.Contains(t, outputs[0], `\"input\\\" is missing`)
		require.Contains(t, outputs[0], `\"wrong\\\" is not an argument`)
		require.Equal(t, 2, requests)
		failure := p.rounds[0].Results[0].Record.Error
		require.Equal(t, engine.ReasonBadArguments, failure.Reason)
	},
	"b5_http_tool_error_output": func(t *testing.T, p *play, outputs []string, requests int) {
		require.Contains(t, outputs[0], `Shout returned [{\"error\":`)
	},
	"d2_two_items_uneven": func(t *testing.T, p *play, outputs []string, requests int) {
		require.Len(t, outputs, 3)
		require.Equal(t, 6, requests)
		require.Contains(t, outputs[0], "I needed no tool")
		require.Contains(t, outputs[2], "101")
	},
	"e3_unknown_tool": func(t *testing.T, p *play, outputs []string, requests int) {
		require.Contains(t, outputs[0], "error")
		require.Contains(t, outputs[0], "No_Such_Tool")
		require.Equal(t, 2, requests)
		require.Empty(t, p.rounds, "an unknown tool alone asks the engine for nothing")
	},
	"e4_unknown_and_known": func(t *testing.T, p *play, outputs []string, requests int) {
		require.Contains(t, outputs[0], "error")
		require.Contains(t, outputs[0], "42")
		require.Equal(t, 2, requests)
		require.Equal(t, 1, p.runs["Calculator"])
	},
}
