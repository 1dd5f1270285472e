package acceptance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// What is different on purpose in runs that waited, and nothing else. Each is
// replaced in the recorded run and in ours, so that all around it is compared.
var intendedFields = map[string]string{
	// When a question is answered differs from run to run.
	"respondedAt": "the time of the answer",
	// n8n shows the address of its test port and the node's own path, which nobody can
	// call; ours is the one that was called.
	"webhookUrl": "the address",
	"host":       "the host and port",
	// n8n's signature is the same for all waits of an execution; ours is made for one wait.
	"signature": "the signature",
}

// intended is a run with these fields replaced.
func intended(t *testing.T, run gjson.Result) gjson.Result {
	t.Helper()
	data, err := json.Marshal(replaced(run.Value()))
	require.NoError(t, err)
	return gjson.ParseBytes(data)
}

func replaced(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = replaced(v[i])
		}
	case map[string]any:
		for key, value := range v {
			v[key] = replaced(value)
			if text, ok := intendedFields[key]; ok {
				v[key] = text
			}
		}
	}
	return v
}

// whileWaiting is a run of ours, read while it waits, without the records of nodes
// that have begun and have no outcome yet. n8n shows an Agent only when it is over; ours
// show it with status running and no data.
func whileWaiting(t *testing.T, run gjson.Result) gjson.Result {
	t.Helper()
	document, runData := decoded(t, run)
	for name, runs := range runData {
		runs := runs.([]any)
		last := runs[len(runs)-1].(map[string]any)
		if last["executionStatus"] != "running" {
			continue
		}
		require.NotContains(t, last, "data", name)
		if runData[name] = runs[:len(runs)-1]; len(runs) == 1 {
			delete(runData, name)
		}
	}
	return encoded(t, document)
}

// renumbered is a recorded run that was resumed, with records numbered in the order
// in which they ran. n8n begins again at 0 with every resume, so that its numbers
// tell no order; ours go on.
func renumbered(t *testing.T, run gjson.Result) gjson.Result {
	t.Helper()
	document, runData := decoded(t, run)
	var records []map[string]any
	for _, runs := range runData {
		for _, r := range runs.([]any) {
			records = append(records, r.(map[string]any))
		}
	}
	slices.SortFunc(records, func(a, b map[string]any) int {
		return cmp.Or(cmp.Compare(a["startTime"].(float64), b["startTime"].(float64)),
			cmp.Compare(a["executionIndex"].(float64), b["executionIndex"].(float64)))
	})
	for i, r := range records {
		r["executionIndex"] = i
	}
	return encoded(t, document)
}

// linksOf are the links to executions that a run started, by node: those of its
// records and those of its items. Of each the workflow is told; the ids of executions
// must be there, and are different from run to run. Ours has more of them than n8n: a tool counts
// its executions like any node, and a record with an error also names the
// execution that failed. These are left out unless n8n has them.
func linksOf(t *testing.T, run, recorded gjson.Result) map[string][]string {
	t.Helper()
	link := func(where string, metadata, recorded gjson.Result) string {
		text := where
		if sub := metadata.Get("subExecution"); sub.Exists() && recorded.Get("subExecution").Exists() {
			require.NotEmpty(t, sub.Get("executionId").Str)
			text += " " + sub.Get("workflowId").Str
		}
		if count := metadata.Get("subExecutionsCount"); count.Exists() && recorded.Get("subExecutionsCount").Exists() {
			text += " " + count.Raw
		}
		return text
	}
	links, runs := map[string][]string{}, runDataOf(run)
	for name, records := range runDataOf(recorded) {
		for i, want := range records {
			require.Greater(t, len(runs[name]), i, name)
			got := runs[name][i]
			links[name] = append(links[name], link("record", got.Get("metadata"), want.Get("metadata")))
			for o, output := range want.Get("data.main").Array() {
				for n, it := range output.Array() {
					at := fmt.Sprintf("data.main.%d.%d.metadata", o, n)
					links[name] = append(links[name], link(at, got.Get(at), it.Get("metadata")))
				}
			}
		}
	}
	return links
}

// decoded is a run as a value that can be changed, and its run data within.
func decoded(t *testing.T, run gjson.Result) (document, runData map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(run.Raw), &document))
	return document, document["data"].(map[string]any)["resultData"].(map[string]any)["runData"].(map[string]any)
}

func encoded(t *testing.T, document map[string]any) gjson.Result {
	t.Helper()
	data, err := json.Marshal(document)
	require.NoError(t, err)
	return gjson.ParseBytes(data)
}
