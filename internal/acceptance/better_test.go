package acceptance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// better are assertions for the cases where what n8n did is wrong; the index
// says what is right instead.
var better = map[string]func(t *testing.T, run gjson.Result, requests int64){
	"a2_two_tools_v0": func(t *testing.T, run gjson.Result, requests int64) {
		answer := answersOf(run)[0]
		assert.Contains(t, answer, "42")
		assert.Contains(t, answer, "SHOUT HI")
		assert.Len(t, runDataOf(run)["AI Agent"], 1, "records of the Agent")
		assert.EqualValues(t, 2, requests, "model requests")
	},
	"b5_http_tool_error_output": func(t *testing.T, run gjson.Result, _ int64) {
		answer := strings.ToLower(answersOf(run)[0])
		assert.Contains(t, answer[strings.LastIndex(answer, "shout returned"):], "error", "the model must see the tool's error")
		assert.Equal(t, "error", runDataOf(run)["Shout"][0].Get("executionStatus").Str)
	},
	"b3_bad_args": func(t *testing.T, run gjson.Result, _ int64) {
		answer := answersOf(run)[0]
		assert.Contains(t, strings.ToLower(answer), "error")
		assert.Regexp(t, "input|wrong", answer, "the error must name the argument")
		assert.Len(t, runDataOf(run)["Calculator"], 1)
		for _, r := range runDataOf(run)["Calculator"] {
			assert.Equal(t, "error", r.Get("executionStatus").Str)
			assert.False(t, r.Get("data.ai_tool.0.0.json.response").Exists(), "the Calculator must not have run")
		}
	},
	"d2_two_items_uneven": func(t *testing.T, run gjson.Result, requests int64) {
		assert.Len(t, answersOf(run), 3)
		assert.EqualValues(t, 6, requests, "model requests")
		agent := runDataOf(run)["AI Agent"]
		for i, it := range outputsOf(agent[len(agent)-1].Get("data"), "main")[0] {
			assert.Equal(t, [][2]int64{{int64(i), 0}}, it.Paired)
		}
	},
	"e3_unknown_tool":  unknownTool,
	"j2_hitl_and_free": freeAndGated,
	"e4_unknown_and_known": func(t *testing.T, run gjson.Result, requests int64) {
		unknownTool(t, run, requests)
		assert.Len(t, runDataOf(run)["Calculator"], 1, "the known tool must run once")
		assert.Contains(t, answersOf(run)[0], "42")
	},
}

// freeAndGated: the free tool ran once, one question was asked, and both results
// reached the model.
func freeAndGated(t *testing.T, run gjson.Result, requests int64) {
	runData := runDataOf(run)
	require.Len(t, runData["Shout"], 1)
	require.Len(t, runData["Approve"], 1)
	require.Len(t, runData["Calculator"], 1)
	require.Len(t, runData["AI Agent"], 1)
	for _, name := range []string{"Shout", "Approve", "Calculator", "AI Agent"} {
		assert.Equal(t, "success", runData[name][0].Get("executionStatus").Str, name)
	}
	assert.True(t, runData["Approve"][0].Get("data.ai_tool.0.0.json.data.approved").Bool())
	assert.Equal(t, `After the approval: Shout returned [{"response":"SHOUT HI"}]; Calculator returned [{"response":"42"}].`, answersOf(run)[0])
	assert.EqualValues(t, 2, requests, "model requests")
}

func unknownTool(t *testing.T, run gjson.Result, requests int64) {
	assert.Contains(t, strings.ToLower(answersOf(run)[0]), "error", "the model must get an error for the unknown tool")
	assert.EqualValues(t, 2, requests, "model requests")
}

// answersOf are the answers of the Agent's last run, one per item, and at least
// one, so that a test without any fails by its text.
func answersOf(run gjson.Result) []string {
	var answers []string
	records := runDataOf(run)["AI Agent"]
	if len(records) > 0 {
		for _, it := range records[len(records)-1].Get("data.main.0").Array() {
			answers = append(answers, it.Get("json.output").String())
		}
	}
	if answers == nil {
		return []string{""}
	}
	return answers
}
