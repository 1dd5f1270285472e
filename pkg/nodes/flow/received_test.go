package flow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestReceived(t *testing.T) {
	const trigger = "n8n-nodes-base.executeWorkflowTrigger"
	const item = `{"x":1,"b":"2","a":null}`
	for name, row := range map[string]struct {
		nodeType         string
		version          float64
		parameters, want string
		err              string
	}{
		"version 1":       {version: 1, parameters: `{"workflowInputs":{"values":[{"name":"a"}]}}`, want: item},
		"accept all":      {version: 1.1, parameters: `{"inputSource":"passthrough","workflowInputs":{"values":[{"name":"a"}]}}`, want: item},
		"declared":        {version: 1.1, parameters: `{"workflowInputs":{"values":[{"name":"a","type":"string"},{"name":"b","type":"number"},{"name":"c"}]}}`, want: `{"a":null,"b":"2","c":null}`},
		"declared, named": {version: 1.1, parameters: `{"inputSource":"workflowInputs","workflowInputs":{"values":[{"name":"b"}]}}`, want: `{"b":"2"}`},
		"none declared":   {version: 1.1, parameters: `{}`, want: item},
		"example":         {version: 1.1, parameters: `{"inputSource":"jsonExample","jsonExample":"{\"b\": 1, \"d\": [2]}"}`, want: `{"b":"2","d":null}`},
		"example, object": {version: 1.1, parameters: `{"inputSource":"jsonExample","jsonExample":{"x":0}}`, want: `{"x":1}`},
		"bad example":     {version: 1.1, parameters: `{"inputSource":"jsonExample","jsonExample":"{oops"}`, err: "not valid JSON"},
		"list":            {version: 1.1, parameters: `{"inputSource":"jsonExample","jsonExample":"[1]"}`, err: "not an object"},
		"other trigger":   {nodeType: "n8n-nodes-base.manualTrigger", version: 1.1, parameters: `{"workflowInputs":{"values":[{"name":"a"}]}}`, want: item},
	} {
		t.Run(name, func(t *testing.T) {
			n := &workflow.Node{Name: "Called", Type: trigger, TypeVersion: row.version, Parameters: json.RawMessage(row.parameters)}
			if row.nodeType != "" {
				n.Type = row.nodeType
			}
			items := nodestest.Items(item)
			got, err := Received(n, items)
			if row.err != "" {
				require.ErrorContains(t, err, row.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, string(got[0].JSON))
			require.Equal(t, item, string(items[0].JSON), "the caller's items stay")
		})
	}
}
