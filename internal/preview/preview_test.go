package preview

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/nodetypes"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// flow is a trigger, a Code node and a node behind it that is looked at.
func flow(t *testing.T, code string) *workflow.Workflow {
	t.Helper()
	w, err := workflow.Parse([]byte(strings.ReplaceAll(`{"nodes":[
		{"name":"Start","type":"n8n-nodes-base.manualTrigger","typeVersion":1,"parameters":{}},
		{"name":"Code","type":"n8n-nodes-base.code","typeVersion":2,"parameters":{"jsCode":"CODE"}},
		{"name":"End","type":"n8n-nodes-base.noOp","typeVersion":1,"parameters":{}}],
		"connections":{"Start":{"main":[[{"node":"Code","type":"main","index":0}]]},"Code":{"main":[[{"node":"End","type":"main","index":0}]]}}}`, "CODE", code)))
	require.NoError(t, err)
	return w
}

func look(t *testing.T, w *workflow.Workflow, input workflow.Items) (*Data, error) {
	t.Helper()
	e, err := expression.New()
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return Up(t.Context(), w, "End", Config{Registry: nodetypes.Registry(), Evaluator: e, Input: input})
}

func TestUpGivesTheInput(t *testing.T) {
	d, err := look(t, flow(t, "return [{json: {n: $json.n + 1}}]"), workflow.Items{{JSON: []byte(`{"n":1}`)}})
	require.NoError(t, err)
	require.Len(t, d.Inputs[0], 1)
	assert.JSONEq(t, `{"n":2}`, string(d.Inputs[0][0].JSON))
	assert.Equal(t, "Code", d.Sources[0].PreviousNode)
	assert.Equal(t, 1, d.RunData.Runs("Code"))
	assert.Zero(t, d.RunData.Runs("End"))
}

// Looking must not change anything: what a script would send is not sent.
func TestUpSendsNothing(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	_, err := look(t, flow(t, "await this.helpers.httpRequest({url: '"+server.URL+"'}); return []"), nil)
	require.ErrorContains(t, err, "acts outside")
	_, err = look(t, flow(t, "const h = this.helpers; await h['httpRequest']({url: '"+server.URL+"'}); return [{json: {}}]"), nil)
	require.ErrorContains(t, err, `node "Code" failed`)
	assert.Zero(t, asked)
}

func TestUpSaysWhyNothingComes(t *testing.T) {
	_, err := look(t, flow(t, "throw new Error('boom')"), nil)
	require.ErrorContains(t, err, "boom")
	_, err = look(t, flow(t, "return []"), nil)
	require.ErrorContains(t, err, "no items come")
}
