package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// Two items, for each a loop over two more, and an agent within.
func TestReport020NestedLoops(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	agent := site.AgentNodes("m")
	two := func(name string) object {
		return node(name, "n8n-nodes-base.code", 2, `{"jsCode":"return [{json:{n:1}},{json:{n:2}}]"}`)
	}
	loop := func(name string) object {
		return node(name, "n8n-nodes-base.splitInBatches", 3, `{"options":{}}`)
	}
	run := l.finished(t, l.submit(t, queue.Submission{Workflow: flow("nested", nil, []object{
		trigger(), two("Outer items"), loop("Outer"), two("Inner items"), loop("Inner"), object(agent[1]), object(agent[2]),
	},
		"Start -> Outer items", "Outer items -> Outer", "Outer/1 -> Inner items", "Inner items -> Inner",
		"Inner/1 -> AI Agent", "AI Agent -> Inner", "Inner/0 -> Outer", "Model ~ai_languageModel~> AI Agent")}))
	assert.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.Len(t, records(run, "AI Agent"), 4)
	assert.Len(t, records(run, "Inner"), 6, "two batches and an end, twice")
	assert.EqualValues(t, 4, site.ModelRequests())
	outer := records(run, "Outer")
	assert.Len(t, outer, 3)
	assert.Len(t, outer[2].Get("data.main.0").Array(), 4, "what all four runs of the agent gave out")
}
